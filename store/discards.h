#pragma once

#include <cstdint>

#include "core/cancel.h"
#include "core/events.h"
#include "core/reactor.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/device.h"
#include "store/allocator.h"

namespace fopd::store {

// Gives the space of segments that have been empty for a while back to the device. A segment is
// empty only once nobody can need what it held: neither a recovery nor a read. It is held
// meanwhile, so that nothing is written to it before the device has forgotten what was there.
class Discards {
public:
    struct Options {
        bool wanted = false;
        Duration interval = 1min;  // So long is a segment empty before, at least.
        Duration pause = 10ms;     // Between two of them.
        // What data comes to next is left alone: it would be written again at once.
        std::uint64_t ahead_blocks = 0;
    };
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        devices::Device& device;
        core::EventSink& events;
        core::WaitQueue& released;  // Woken when a segment is held no more.
    };
    Discards(const Parts& parts, const Options& options)
        : reactor_(parts.reactor),
          device_(parts.device),
          events_(parts.events),
          released_(parts.released),
          options_(options) {}

    // Until it is cancelled; the allocator outlives it.
    Task<void> run(Allocator* space, core::CancelSource* stop);
    std::uint64_t discarded_segments() const { return discarded_segments_; }

private:
    Task<Result<void>> discard_some(Allocator* space, core::CancelSource* stop);

    core::Reactor& reactor_;
    devices::Device& device_;
    core::EventSink& events_;
    core::WaitQueue& released_;
    const Options options_;
    std::uint64_t discarded_segments_ = 0;
};

}  // namespace fopd::store
