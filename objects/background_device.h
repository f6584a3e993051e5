#pragma once

#include <cstdint>
#include <string_view>

#include "core/reactor.h"
#include "devices/device.h"
#include "io_sched/io_request.h"
#include "io_sched/main_scheduler.h"

namespace fopd::objects {

// A disk, for bulk work that nobody waits for: reads of the log for its cleaning and its check,
// zeros written ahead, and discards. These go through the main scheduler as background requests, so
// they yield to the reads and writes of clients, and reads and writes count in the queue depth.
// While the scheduler does not serve the disk, during opening and closing, they go to the disk
// directly. All other operations always do.
//
// Lives on the disk's reactor.
class BackgroundDevice final : public devices::Device {
public:
    // All parts outlive the device.
    struct Parts {
        core::Reactor& reactor;
        devices::Device& device;
        io_sched::MainScheduler& scheduler;
        io_sched::MediumId medium;
    };
    explicit BackgroundDevice(const Parts& parts) : parts_(parts) {}

    std::string_view name() const override { return parts_.device.name(); }
    const devices::Geometry& geometry() const override { return parts_.device.geometry(); }
    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override;
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override;
    Task<Result<void>> flush() override { return parts_.device.flush(); }
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override;
    Task<Result<devices::Stretch>> find_hole(std::uint64_t offset,
                                             std::uint64_t size_bytes) override {
        return parts_.device.find_hole(offset, size_bytes);
    }

private:
    bool is_scheduled() const;
    Task<Result<void>> schedule(io_sched::IoType type, core::Buffer buffer, std::uint64_t offset,
                                core::WaitOptions wait = {});

    const Parts parts_;
};

}  // namespace fopd::objects
