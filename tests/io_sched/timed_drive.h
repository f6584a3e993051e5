#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/reactor.h"
#include "io_sched/io_executor.h"
#include "io_sched/main_scheduler.h"

namespace fopd::io_sched::testing {

// What all drives of a test did and do.
struct DriveLog {
    struct Operation {
        std::uint8_t drive;
        MediumId medium;
        std::uint64_t offset;
        friend bool operator==(const Operation&, const Operation&) = default;
    };
    std::vector<Operation> begun;
    std::size_t mounts = 0;
    std::size_t running_max = 0;
    std::size_t running = 0;
    // Operations on them fail.
    std::set<std::uint8_t> bad_drives;
    std::set<MediumId> bad_media;
    // They are down after a failure.
    std::set<std::uint8_t> dying_drives;
    // They give no cartridge back.
    std::set<std::uint8_t> stuck_drives;
    // They do not the first time.
    std::set<std::uint8_t> slow_to_give;
    // Operations on them time out.
    std::set<std::uint8_t> silent_drives;
    std::map<MediumId, std::uint8_t> loaded;
    std::uint64_t end_of_data = 0;  // Where writes end, on every cartridge.
    std::size_t not_begun = 0;      // Their cartridge could not be taken out of another drive.
};

// A drive that needs a minute for another cartridge, and ten seconds for an operation. Its robot
// takes no cartridge out of another drive.
class TimedDrive final : public IoExecutor {
public:
    TimedDrive(core::Reactor& reactor, std::uint8_t number, DriveLog& log)
        : reactor_(reactor), number_(number), log_(log) {}

    Task<Result<void>> execute(const IoRequest& request, const IoPart& part) override {
        const bool appends = request.type == IoType::kWrite;
        position_ = appends ? log_.end_of_data : part.offset + part.size_bytes;
        return run(part.medium, part.offset);
    }
    Task<Result<void>> execute_joined(std::span<const IoShare> /*writes*/) override {
        ENSURE(false);
        co_return Result<void>{};
    }
    void could_not_execute(const IoRequest& /*request*/) override { ++log_.not_begun; }
    Content content() const override {
        return {.medium = medium_, .position = position_, .is_down = is_down_};
    }
    Task<Result<void>> take_out() override {
        (void)co_await reactor_.sleep_for(20s);
        if (log_.slow_to_give.erase(number_) > 0) {
            co_return std::unexpected(Error{.code = Errc::kIo, .context = "not yet"});
        }
        if (log_.stuck_drives.contains(number_)) {
            is_down_ = true;
            co_return std::unexpected(Error{.code = Errc::kIo, .context = "stuck"});
        }
        if (medium_) log_.loaded.erase(*medium_);
        medium_.reset();
        co_return Result<void>{};
    }

private:
    Task<Result<void>> run(MediumId medium, std::uint64_t offset) {
        log_.begun.push_back({number_, medium, offset});
        log_.running_max = std::max(log_.running_max, ++log_.running);
        const auto done = co_await perform(medium);
        --log_.running;
        if (!done && log_.dying_drives.contains(number_)) is_down_ = true;
        co_return done;
    }
    Task<Result<void>> perform(MediumId medium) {
        if (medium_ != medium) {
            ++log_.mounts;
            if (medium_) {
                const auto taken = co_await take_out();
                if (!taken) co_return taken;
                (void)co_await reactor_.sleep_for(40s);
            } else {
                (void)co_await reactor_.sleep_for(60s);
            }
            if (!log_.loaded.emplace(medium, number_).second) {
                co_return std::unexpected(
                    Error{.code = Errc::kBusy, .context = "the cartridge is in another drive"});
            }
            medium_ = medium;
        }
        (void)co_await reactor_.sleep_for(10s);
        if (log_.silent_drives.contains(number_)) {
            co_return std::unexpected(Error{.code = Errc::kTimedOut, .context = "drive"});
        }
        if (log_.bad_drives.contains(number_) || log_.bad_media.contains(medium)) {
            co_return std::unexpected(Error{.code = Errc::kIo, .context = "drive"});
        }
        co_return Result<void>{};
    }

    core::Reactor& reactor_;
    const std::uint8_t number_;
    DriveLog& log_;
    std::optional<MediumId> medium_;
    std::uint64_t position_ = 0;
    bool is_down_ = false;
};

}  // namespace fopd::io_sched::testing
