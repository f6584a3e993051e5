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

// Discards segments that have been empty for a while on the device. Empty means that neither a
// recovery nor a read can need the old content. A segment is held until the device has answered, so
// that nothing is written to it meanwhile.
class Discards {
public:
    struct Options {
        bool wanted = false;
        Duration interval = 1min;  // How long a segment must be empty, at least.
        Duration pause = 10ms;     // Between two discards.
        // Segments that data reaches in its next blocks are not discarded: they will be written
        // soon.
        std::uint64_t ahead_blocks = 0;
    };
    // All parts outlive the object.
    struct Parts {
        core::Reactor& reactor;
        devices::Device& device;
        core::EventSink& events;
        core::WaitQueue& released;  // Woken when a hold of a segment has ended.
    };
    Discards(const Parts& parts, const Options& options)
        : reactor_(parts.reactor),
          device_(parts.device),
          events_(parts.events),
          released_(parts.released),
          options_(options) {}

    // Runs until it is cancelled, a discard fails or the device has none. The allocator outlives
    // it.
    Task<void> run(Allocator* space, core::CancelSource* stop);

private:
    Task<Result<void>> discard_some(Allocator* space, core::CancelSource* stop);

    core::Reactor& reactor_;
    devices::Device& device_;
    core::EventSink& events_;
    core::WaitQueue& released_;
    const Options options_;
};

}  // namespace fopd::store
