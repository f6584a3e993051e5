#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/reactor.h"
#include "devices/tape/drive_model.h"
#include "devices/tape/tape_drive.h"
#include "library/tape_figures.h"

namespace fopd::library {

// A drive whose use is counted: mounts, bytes, and the time of locates beside the time that its
// model predicts.
class MeasuredDrive final : public devices::TapeDrive {
public:
    // All outlive it.
    MeasuredDrive(core::Reactor& reactor, devices::TapeDrive& drive, DriveFigures& figures)
        : reactor_(reactor), drive_(drive), figures_(figures) {}

    DriveFigures& figures() { return figures_; }
    // Of the loaded cartridge: how large its blocks are on average, for predictions. 0: unknown.
    void expect_blocks_of(std::uint64_t size_bytes) { block_bytes_ = size_bytes; }

    std::string_view name() const override { return drive_.name(); }
    std::string_view serial() const override { return drive_.serial(); }
    std::string_view technology() const override { return drive_.technology(); }

    Task<Result<devices::LoadedTape>> load() override;
    Task<Result<void>> unload() override;
    const std::optional<devices::LoadedTape>& loaded() const override { return drive_.loaded(); }
    Task<Result<devices::TapePosition>> position() override { return drive_.position(); }
    Task<Result<devices::TapeRead>> read(core::Buffer into) override;
    Task<Result<devices::TapeRoom>> write(core::Buffer from) override;
    Task<Result<devices::TapeRoom>> write_filemarks(std::uint32_t count, Marks marks) override {
        return drive_.write_filemarks(count, marks);
    }
    Task<Result<void>> locate(std::uint64_t block) override;
    Task<Result<void>> skip_filemarks(std::uint32_t count) override {
        return drive_.skip_filemarks(count);
    }
    Task<Result<void>> to_end_of_data() override { return drive_.to_end_of_data(); }

private:
    Duration predicted(std::uint64_t from_block, std::uint64_t to_block) const;

    core::Reactor& reactor_;
    devices::TapeDrive& drive_;
    DriveFigures& figures_;
    std::uint64_t block_bytes_ = 0;
    std::optional<devices::DriveModel> model_;  // Of the loaded cartridge; nothing: unknown.
};

}  // namespace fopd::library
