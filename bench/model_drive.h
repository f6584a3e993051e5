#pragma once

#include <cstdint>
#include <optional>

#include "core/reactor.h"
#include "devices/tape/drive_model.h"
#include "io_sched/io_executor.h"
#include "io_sched/read_order.h"

namespace fopd::bench {

// Totals of the work of drives.
struct DriveFigures {
    std::uint64_t mounts = 0;
    Duration locating{0};
    Duration moving{0};  // Data.
};

// The executor of a drive that needs as long as the model says, in virtual time, and has no data.
class ModelDrive final : public io_sched::IoExecutor {
public:
    ModelDrive(core::Reactor& reactor, const devices::DriveModel& model, DriveFigures& figures)
        : reactor_(reactor), model_(model), figures_(figures) {}

    Task<Result<void>> execute(const io_sched::IoRequest& request,
                               const io_sched::IoPart& part) override {
        Duration time{0};
        if (medium_ != part.medium) {
            if (medium_) {
                time += devices::rewind_time(model_, head_) + model_.unload;
                time += devices::kChangerMove;
            }
            time += devices::kChangerMove + model_.load;
            medium_ = part.medium;
            head_ = devices::beginning_of(model_);
            position_ = 0;
            ++figures_.mounts;
        }
        const bool appends = request.type == io_sched::IoType::kWrite;
        const devices::PhysicalPosition begin =
            appends ? head_ : devices::position_of_byte(model_, part.offset);
        const Duration locate = devices::locate_time(model_, head_, begin);
        const Duration transfer = devices::transfer_time(model_, part.size_bytes);
        figures_.locating += locate;
        figures_.moving += transfer;
        head_ = io_sched::stretch_from(model_, begin, part.size_bytes).end;
        position_ = (appends ? position_ : part.offset) + part.size_bytes;
        return spend(time + locate + transfer);
    }
    Content content() const override { return {.medium = medium_, .position = position_}; }
    Task<Result<void>> execute_joined(std::span<const io_sched::IoShare> /*writes*/) override {
        co_return std::unexpected(Error{.code = Errc::kUnsupported, .context = "a drive"});
    }

private:
    Task<Result<void>> spend(Duration time) { co_return co_await reactor_.sleep_for(time); }

    core::Reactor& reactor_;
    const devices::DriveModel& model_;
    DriveFigures& figures_;
    std::optional<io_sched::MediumId> medium_;
    devices::PhysicalPosition head_;
    std::uint64_t position_ = 0;
};

}  // namespace fopd::bench
