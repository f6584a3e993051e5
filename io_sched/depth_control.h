#pragma once

#include <cstdint>

#include "core/time.h"

namespace fopd::io_sched {

struct DepthOptions {
    Duration latency_goal = 2ms;  // For the mean of a round of operations.
    std::uint32_t min = 16;       // Whatever the latency is.
    std::uint32_t max = 128;
};

// What suits a disk that turns, or one that does not. An empty goal is the kind's own; `max` bounds
// both.
DepthOptions depth_options(bool rotational, Duration latency_goal, std::uint32_t max);

// How many operations a device is given at a time, so that they take about as long as the goal
// says. A round is as many operations as may run at a time. After one whose mean was above the goal
// a quarter fewer may; after one whose mean was not, and in which there was no room for more, one
// more may, or twice as many as long as the goal was never missed. Pure.
class DepthControl {
public:
    explicit DepthControl(DepthOptions options);

    std::uint32_t depth() const { return depth_; }
    // One more runs; they are `in_flight` now.
    void began(std::uint64_t in_flight) { full_ = full_ || in_flight >= depth_; }
    void ended(Duration latency);

private:
    const DepthOptions options_;
    std::uint32_t depth_;
    std::uint32_t count_ = 0;  // Of this round.
    Duration sum_{0};
    bool full_ = false;  // In this round.
    bool missed_ = false;
};

}  // namespace fopd::io_sched
