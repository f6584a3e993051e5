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

// Fills the empty segments that data comes to next, on devices that gain by it. It follows the
// allocator: nothing is written while that gives out nothing, or gives out long pieces, which gain
// less than the zeros take. A segment is held meanwhile, so that no zeros come to a block that
// somebody else was given. Lives on the device's reactor.
class ZerosAhead {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        devices::Device& device;
        core::EventSink& events;
        core::WaitQueue& released;  // Woken when a segment is held no more.
    };
    ZerosAhead(const Parts& parts, std::uint64_t ahead_bytes);

    // So much was given out, in that segment.
    void follow(Place place, std::uint32_t segment);
    // Until it is cancelled; the allocator outlives it.
    Task<void> run(Allocator* space, core::CancelSource* stop);
    // What is being written is written; the rest is not. Before the cancelling.
    void stop() { filler_.stop(); }

private:
    Task<Result<bool>> fill(Place place);
    void report(const Error& error) const;

    devices::Device& device_;
    const std::uint64_t ahead_blocks_;
    core::EventSink& events_;
    HoleFiller filler_;
    std::uint32_t segment_ = 0;  // Where data was given a place last,
    std::uint64_t blocks_ = 0;   // so many blocks
    std::uint64_t pieces_ = 0;   // in so many pieces.
    core::WaitQueue moved_;
    core::WaitQueue& released_;
};

}  // namespace fopd::store
