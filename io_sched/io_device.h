#pragma once

#include <array>
#include <cstdint>

#include "core/counter.h"
#include "io_sched/depth_control.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

// A device as schedulers see it: which medium is in it, and whether it has room for one more
// operation. Several schedulers may share it. Lives on its reactor.
class IoDevice {
public:
    IoDevice(MediumId medium, DepthOptions options) : medium_(medium), depth_(options) {
        allowed_.set(depth_.depth());
    }
    IoDevice(const IoDevice&) = delete;
    IoDevice& operator=(const IoDevice&) = delete;

    MediumId medium() const { return medium_; }
    // Reads and writes share the depth. A format takes long and says nothing about the others'
    // latency: one at a time, besides them.
    bool has_room(IoType type) const {
        if (type == IoType::kFormat) return running_count(IoType::kFormat) == 0;
        return in_flight() < depth_.depth();
    }

    void begin(IoType type) {
        core::Counter& running = running_[index(type)];
        running.set(running.get() + 1);
        if (type != IoType::kFormat) depth_.began(in_flight());
    }
    void end(IoType type) {
        core::Counter& running = running_[index(type)];
        running.set(running.get() - 1);
    }
    // How long a read or write took, from begin() on. One that failed teaches nothing.
    void learn(Duration latency) {
        depth_.ended(latency);
        allowed_.set(depth_.depth());
    }

    // Reads and writes.
    std::uint64_t in_flight() const {
        return running_count(IoType::kRead) + running_count(IoType::kWrite);
    }

    // Any thread.
    std::uint64_t running_count(IoType type) const { return running_[index(type)].get(); }
    std::uint64_t depth() const { return allowed_.get(); }

private:
    static std::size_t index(IoType type) { return static_cast<std::size_t>(type); }

    const MediumId medium_;
    DepthControl depth_;
    std::array<core::Counter, kIoTypeCount> running_;
    core::Counter allowed_;
};

}  // namespace fopd::io_sched
