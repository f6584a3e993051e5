#pragma once

#include <cstdint>

#include "core/cancel.h"
#include "core/events.h"
#include "core/reactor.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/device.h"
#include "store/allocator.h"
#include "store/hole_filler.h"

namespace fopd::store {

// Writes zeros into the empty segments that data reaches next, on devices whose first write to a
// block is slow. It follows the allocator, and does nothing while no blocks are allocated, or only
// long runs, for which the zeros cost more than they gain. The segment is held meanwhile, so that
// nobody is given its blocks. Lives on the device's reactor.
class ZerosAhead {
public:
    // All parts outlive the object.
    struct Parts {
        core::Reactor& reactor;
        devices::Device& device;
        core::EventSink& events;
        core::WaitQueue& released;  // Woken when a hold of a segment has ended.
    };
    ZerosAhead(const Parts& parts, std::uint64_t ahead_bytes);

    // The range was allocated, in this segment.
    void follow(DiskRange range, std::uint32_t segment);
    // Runs until it is cancelled. The allocator outlives it.
    Task<void> run(Allocator* space, core::CancelSource* stop);
    // Lets writes in flight end and begins no more. Called before `stop` is cancelled.
    void stop() { filler_.stop(); }
    // A change needs the blocks of the held segment: ends the hold after the write in flight.
    void give_way() { filler_.interrupt(); }

private:
    Task<Result<bool>> fill(DiskRange range);
    void report(const Error& error) const;

    devices::Device& device_;
    const std::uint64_t ahead_blocks_;
    core::EventSink& events_;
    HoleFiller filler_;
    std::uint32_t segment_ = 0;  // The segment of the last allocation.
    std::uint64_t blocks_ = 0;   // How many blocks were allocated in segment_.
    std::uint64_t runs_ = 0;     // In how many runs these were allocated.
    core::WaitQueue moved_;
    core::WaitQueue& released_;
};

}  // namespace fopd::store
