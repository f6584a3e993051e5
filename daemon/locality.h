#pragma once

#include <cstdint>

#include "core/buffer_pool.h"
#include "core/gate.h"
#include "core/reactor.h"

namespace fopd::daemon {

// One core's share of the node: a reactor and what belongs to it alone. The node makes and destroys
// it; everything in between happens on its reactor.
class Locality {
public:
    Locality(std::uint32_t index, core::Reactor& reactor)
        : index_(index), reactor_(reactor), buffers_(reactor) {}

    std::uint32_t index() const { return index_; }
    core::Reactor& reactor() { return reactor_; }
    const core::Reactor& reactor() const { return reactor_; }
    core::BufferPool& buffers() { return buffers_; }
    const core::BufferPool& buffers() const { return buffers_; }

    // What runs on behalf of clients is inside this gate; draining closes it.
    core::Gate& work() { return work_; }
    // Cancelled when the drain timeout is over: work listens to it and ends at its next wait.
    core::CancelSource& cut_off() { return cut_off_; }
    // What the locality does for the node.
    core::Gate& duties() { return duties_; }

    // Lets no new work in and waits until none runs any more, at most until `deadline`. Returns how
    // much still does.
    Task<std::uint64_t> drain(Instant deadline);
    // Cuts off what is left and gives the buffers back; how much was cut off.
    Task<std::uint64_t> close();

private:
    const std::uint32_t index_;
    core::Reactor& reactor_;
    core::BufferPool buffers_;
    core::Gate work_;
    core::Gate duties_;
    core::CancelSource cut_off_;
};

}  // namespace fopd::daemon
