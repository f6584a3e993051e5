#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/counter.h"
#include "io_sched/depth_control.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

// A device as schedulers see it: its medium, and whether it has room for another operation. Several
// schedulers may share a device. Used on one reactor.
class IoDevice {
public:
    IoDevice(MediumId medium, DepthOptions options) : medium_(medium), depth_(options) {
        allowed_.set(depth_.depth());
    }
    IoDevice(const IoDevice&) = delete;
    IoDevice& operator=(const IoDevice&) = delete;

    MediumId medium() const { return medium_; }
    // Reads and writes share the queue depth. Formats do not count in it, because a format takes
    // long and says nothing about read or write latency; one format runs at a time.
    bool has_room(IoType type) const {
        if (type == IoType::kFormat) return running_count(IoType::kFormat) == 0;
        return weight_ < depth_.depth() || in_flight() < std::min(kAlways, depth_.depth());
    }

    void begin(IoType type, std::uint64_t size_bytes = 0) {
        core::Counter& running = running_[index(type)];
        running.set(running.get() + 1);
        if (type == IoType::kFormat) return;
        weight_ += weight_of(size_bytes);
        depth_.began(weight_);
    }
    // A running operation of `size_bytes` is extended by `more_bytes`.
    void grow(std::uint64_t size_bytes, std::uint64_t more_bytes) {
        weight_ += weight_of(size_bytes + more_bytes) - weight_of(size_bytes);
        depth_.began(weight_);
    }
    // `size_bytes` is the total given to begin() and grow().
    void end(IoType type, std::uint64_t size_bytes = 0) {
        core::Counter& running = running_[index(type)];
        running.set(running.get() - 1);
        if (type != IoType::kFormat) weight_ -= weight_of(size_bytes);
    }
    // Reports the latency of a successful read or write, measured from begin(). Failed operations
    // are not reported.
    void learn(Duration latency, std::uint64_t size_bytes = 0) {
        depth_.ended(latency, weight_of(size_bytes));
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
    // Two operations may always run (one at a depth of 1), however large, so that the device does
    // not idle between them.
    static constexpr std::uint32_t kAlways = 2;

    static std::size_t index(IoType type) { return static_cast<std::size_t>(type); }

    const MediumId medium_;
    DepthControl depth_;
    std::uint64_t weight_ = 0;  // The weight of the reads and writes in flight.
    std::array<core::Counter, kIoTypeCount> running_;
    core::Counter allowed_;
};

}  // namespace fopd::io_sched
