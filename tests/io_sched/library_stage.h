#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "io_sched/main_scheduler.h"
#include "tests/io_sched/main_stage.h"
#include "tests/io_sched/timed_drive.h"

namespace fopd::io_sched::testing {

inline constexpr std::uint64_t kGiB = 1UL << 30;

struct TapeRequest : NumberedRequest {
    TapeRequest(IoType what, std::initializer_list<MediumId> media, std::uint64_t offset = 0)
        : NumberedRequest(&ended) {
        type = what;
        family = IoFamily::kTape;
        for (const MediumId medium : media) add_part(medium, offset, kGiB);
    }
    static void ended(IoRequest& request) { ++static_cast<TapeRequest&>(request).completed; }
    bool ended_with(Errc code) const {
        return completed == 1 && !result && result.error().code == code;
    }
    bool ended_well() const { return completed == 1 && result.has_value(); }

    int completed = 0;
};

template <typename Row>
const Row* named(std::span<const Row> rows, std::string_view name) {
    const auto row = std::ranges::find(rows, name, &Row::name);
    REQUIRE(row != rows.end());
    return &*row;
}

inline IoSchedSettings grouped() {
    IoSchedSettings settings;
    settings.tape.read_algo = named(drive_algorithms(), "grouped_read");
    settings.tape.write_algo = named(drive_algorithms(), "grouped_write");
    return settings;
}

// Drives that serve requests, and twelve cartridges.
struct LibraryStage : IoWorld {
    explicit LibraryStage(std::uint8_t drives, const IoSchedSettings& settings = {})
        : IoWorld(1), main(std::make_unique<MainScheduler>(*reactor, settings)) {
        for (std::uint8_t number = 1; number <= drives; ++number) {
            const auto added = main->add_drive({.number = number, .technology = "lto9"},
                                               std::make_unique<TimedDrive>(*reactor, number, log));
            REQUIRE(added.has_value());
            drive.push_back(*added);
        }
        for (std::uint32_t id = 1; id <= 12; ++id) main->put_medium(cartridge(id));
    }
    ~LibraryStage() { reactor->drop_coroutines(); }

    static IoMedium cartridge(std::uint32_t id) {
        return {.id = MediumId{id},
                .technology = "lto9",
                .capacity_bytes = 18'000 * kGiB,
                .free_bytes = 18'000 * kGiB};
    }
    void push(IoRequest& request) { world.run(*reactor, push_in_turn(&request)); }
    Task<void> push_in_turn(IoRequest* request) {
        main->push(*request);
        co_return;
    }
    void settle() { world.run_for(24h); }
    // An administrator loads the cartridge, or earlier requests did.
    void load(std::uint8_t number, MediumId medium) {
        TapeRequest first(IoType::kRead, {medium});
        for (IoDevice* const each : drive) {
            if (each->number() != number) main->set_drive_state(*each, DeviceState::kHeld);
        }
        push(first);
        world.run_for(5min);
        REQUIRE(first.ended_well());
        for (IoDevice* const each : drive) main->set_drive_state(*each, DeviceState::kReady);
        log.begun.clear();
    }

    DriveLog log;
    std::unique_ptr<MainScheduler> main;
    std::vector<IoDevice*> drive;
};

}  // namespace fopd::io_sched::testing
