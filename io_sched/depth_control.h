#pragma once

#include <cstdint>

#include "core/time.h"

namespace fopd::io_sched {

struct DepthOptions {
    Duration latency_goal = 2ms;  // For the mean of a round of operations.
    std::uint32_t min = 1;
    std::uint32_t max = 128;
};

// How many operations a device is given at a time, so that they take about as long as the goal
// says: one more after each round in which all were needed and the mean was below it, a quarter
// fewer after one in which it was above. A round is as many operations as may run at a time. Pure.
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
    bool full_ = false;  // In this round there was no room for more.
};

}  // namespace fopd::io_sched
