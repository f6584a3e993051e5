#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>

#include "core/virtual_world.h"
#include "io_sched/main_scheduler.h"
#include "tests/catch.h"
#include "tests/io_sched/manual_device.h"
#include "tests/io_sched/requests.h"
#include "tests/replay.h"

namespace fopd::io_sched::testing {

using devices::kBlockBytes;

inline constexpr MediumId kA{1};
inline constexpr MediumId kB{2};
inline constexpr Error kDiskError{.code = Errc::kIo, .context = "disk"};

struct IoWorld : fopd::testing::Replay {
    explicit IoWorld(std::uint64_t seed)
        : Replay(seed), world(seed), reactor(world.make_reactor()) {}
    ~IoWorld() { reactor->drop_coroutines(); }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
};

// A request that counts how often it was completed.
struct CountedRequest : NumberedRequest {
    CountedRequest(IoType what, std::initializer_list<MediumId> media, std::uint64_t offset = 0,
                   Complete complete = &count)
        : NumberedRequest(complete) {
        type = what;
        for (const MediumId medium : media) add_part(medium, offset, kBlockBytes);
    }
    static void count(IoRequest& request) { ++static_cast<CountedRequest&>(request).completed; }
    bool ended_with(Errc code) const {
        return completed == 1 && !result && result.error().code == code;
    }
    bool ended_well() const { return completed == 1 && result.has_value(); }

    int completed = 0;
};

// Two devices with room for `depth` each, whose operations end when the test says so.
struct MainStage : IoWorld {
    explicit MainStage(std::uint32_t depth = 128, IoSchedSettings settings = {})
        : IoWorld(1), a(*reactor), b(*reactor) {
        settings.depth_max = depth;
        main.emplace(*reactor, settings);
        REQUIRE(add_disk(*main, kA, a).has_value());
        REQUIRE(add_disk(*main, kB, b).has_value());
    }
    ~MainStage() { reactor->drop_coroutines(); }

    // In a turn, as all are.
    void push(IoRequest& request) { world.run(*reactor, push_in_turn(&request)); }
    Task<void> push_in_turn(IoRequest* request) {
        main->push(*request);
        co_return;
    }
    void cancel(core::CancelSource& source) { world.run(*reactor, cancel_in_turn(&source)); }
    static Task<void> cancel_in_turn(core::CancelSource* source) {
        source->cancel();
        co_return;
    }
    void settle() { world.run_for(1us); }
    // Removes a device, noting when it is gone.
    Task<void> remove(MediumId medium, std::optional<Result<void>>* ended) {
        const Result<void> result = co_await main->remove_device(medium);
        ended->emplace(result);
    }
    Task<void> stop(bool* ended) {
        co_await main->stop();
        *ended = true;
    }

    ManualDevice a;
    ManualDevice b;
    core::Gate gate;
    std::optional<MainScheduler> main;
};

}  // namespace fopd::io_sched::testing
