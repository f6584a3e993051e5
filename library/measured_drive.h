#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/reactor.h"
#include "devices/tape/drive_model.h"
#include "devices/tape/tape_drive.h"
#include "library/tape_figures.h"

namespace fopd::library {

// Measures another drive: counts mounts and bytes, and compares the time of locates with the time
// that the drive's model predicts. Also notes whether operations have succeeded, so that the
// library can judge the drive and the cartridge.
class MeasuredDrive final : public devices::TapeDrive {
public:
    // All outlive it.
    MeasuredDrive(core::Reactor& reactor, devices::TapeDrive& drive, DriveFigures& figures)
        : reactor_(reactor), drive_(drive), figures_(figures) {}

    DriveFigures& figures() { return figures_; }
    // Sets the average size of a block on the loaded cartridge, for predictions. 0: unknown.
    void expect_blocks_of(std::uint64_t size_bytes) { block_bytes_ = size_bytes; }

    // The operations since begin_trial().
    struct Trial {
        bool has_read = false;
        bool has_synced = false;
        // The last operation has failed because of the drive or the cartridge.
        bool has_failed = false;
    };
    void begin_trial() { trial_ = {}; }
    const Trial& trial() const { return trial_; }
    // Notes a failure that the drive has not reported: the data that it has written cannot be read
    // back.
    void fail_trial() { trial_.has_failed = true; }

    std::string_view name() const override { return drive_.name(); }
    std::string_view serial() const override { return drive_.serial(); }
    std::string_view technology() const override { return drive_.technology(); }

    Task<Result<devices::LoadedTape>> load() override;
    Task<Result<void>> unload() override;
    const std::optional<devices::LoadedTape>& loaded() const override { return drive_.loaded(); }
    Task<Result<devices::TapePosition>> position() override;
    Task<Result<devices::TapeRead>> read(core::Buffer into) override;
    Task<Result<devices::TapeRoom>> write(core::Buffer from) override;
    Task<Result<devices::TapeRoom>> write_filemarks(std::uint32_t count, Marks marks) override;
    Task<Result<void>> locate(std::uint64_t block) override;
    Task<Result<void>> skip_filemarks(std::uint32_t count) override;
    Task<Result<void>> to_end_of_data() override;

private:
    template <typename T>
    void note(const Result<T>& result) {
        trial_.has_failed = !result && devices::is_drive_fault(result.error());
    }
    Duration predicted(std::uint64_t from_block, std::uint64_t to_block) const;

    core::Reactor& reactor_;
    devices::TapeDrive& drive_;
    DriveFigures& figures_;
    Trial trial_;
    std::uint64_t block_bytes_ = 0;
    // The model for the loaded cartridge; nothing: unknown.
    std::optional<devices::DriveModel> model_;
};

}  // namespace fopd::library
