#include "io_sched/depth_control.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::io_sched {

namespace {

// With fewer operations, a disk is not fully used: a rotational one has no choice of order, a
// solid-state one has idle channels. So the depth stays at least this, even if the disk misses its
// goal at any depth.
constexpr std::uint32_t kRotationalMin = 4;
constexpr std::uint32_t kSolidStateMin = 16;

constexpr Duration kRotationalGoal = 20ms;
constexpr Duration kSolidStateGoal = 2ms;

}  // namespace

DepthOptions depth_options(bool rotational, Duration latency_goal, std::uint32_t max) {
    if (latency_goal == Duration::zero()) {
        latency_goal = rotational ? kRotationalGoal : kSolidStateGoal;
    }
    return {.latency_goal = latency_goal,
            .min = std::min(rotational ? kRotationalMin : kSolidStateMin, max),
            .max = max};
}

DepthControl::DepthControl(DepthOptions options)
    : options_(options), depth_(std::max(options.min, options.start)) {
    ENSURE(options.min > 0);
    ENSURE(options.start <= options.max);
    ENSURE(options.min <= options.max);
}

void DepthControl::ended(Duration latency, std::uint64_t weight) {
    sum_ += latency;
    ++count_;
    weight_ += weight;
    if (weight_ < depth_) return;

    const Duration mean = sum_ / count_;
    if (mean > options_.latency_goal) {
        missed_ = true;
        depth_ = std::max(options_.min, depth_ - std::max(depth_ / 4, 1U));
    } else if (full_) {
        depth_ = std::min(options_.max, missed_ ? depth_ + 1 : depth_ * 2);
    }
    weight_ = 0;
    count_ = 0;
    sum_ = Duration::zero();
    full_ = false;
}

}  // namespace fopd::io_sched
