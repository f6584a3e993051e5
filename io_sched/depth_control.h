#pragma once

#include <cstdint>

#include "core/time.h"

namespace fopd::io_sched {

struct DepthOptions {
    Duration latency_goal = 2ms;  // For the mean latency of a round of operations.
    std::uint32_t min = 16;       // Lower limit, whatever the latency is.
    std::uint32_t max = 128;
    std::uint32_t start = 0;  // 0: start at `min`.
};

// Options suitable for a rotational or solid-state disk. Without a goal, the default of the kind is
// used; `max` bounds both.
DepthOptions depth_options(bool rotational, Duration latency_goal, std::uint32_t max);

// The weight of an operation in the queue depth: a large operation counts as several small ones.
inline constexpr std::uint64_t kBytesPerWeight = 64ULL << 10;
constexpr std::uint64_t weight_of(std::uint64_t size_bytes) {
    return 1 + size_bytes / kBytesPerWeight;
}

// Adapts a device's queue depth, in weights, so that the mean latency stays near the goal. A round
// is one depth's worth of completed weight. If the round's mean latency was above the goal, the
// depth shrinks by a quarter. Otherwise, if the queue was full during the round, the depth grows by
// one, or doubles as long as the goal was never missed. Does no I/O.
class DepthControl {
public:
    explicit DepthControl(DepthOptions options);

    std::uint32_t depth() const { return depth_; }
    // An operation was started; `in_flight` is the total weight in flight, including it.
    void began(std::uint64_t in_flight) { full_ = full_ || in_flight >= depth_; }
    void ended(Duration latency, std::uint64_t weight = 1);

private:
    const DepthOptions options_;
    std::uint32_t depth_;
    // The weight, number and total latency of the operations of the current round.
    std::uint64_t weight_ = 0;
    std::uint32_t count_ = 0;
    Duration sum_{0};
    bool full_ = false;  // The queue was full.
    bool missed_ = false;
};

}  // namespace fopd::io_sched
