#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/counter.h"
#include "core/ensure.h"
#include "core/time.h"
#include "io_sched/depth_control.h"
#include "lrs/request.h"

namespace fopd::reqh {

struct AdmissionRule {
    std::uint32_t max_foms = 128;
    // The target for the mean time a fom's reads and writes wait for devices; fewer foms run while
    // the mean is above it. None: no target.
    std::optional<Duration> io_wait_goal = 1ms;

    friend bool operator==(const AdmissionRule&, const AdmissionRule&) = default;
};

// Limits the number of foms that run at a time, so that excess fops wait in the request scheduler,
// where the policy orders them, and not at the devices, where it cannot. With an io_wait_goal, a
// fom's weight is one plus one for each 64 KiB it moves.
//
// This is for foms of the data lane. Those of the control lane wait for no device; they have places
// of their own, so neither lane takes room from the other. Pure.
class Admission {
public:
    // What a fom takes of the room.
    struct Load {
        std::uint64_t size_bytes = 0;
        lrs::Lane lane = lrs::Lane::kData;
    };

    explicit Admission(const AdmissionRule& rule) { set(rule); }

    // Running foms continue. The adaptation starts anew if the rule differs.
    void set(const AdmissionRule& rule) {
        ENSURE(rule.max_foms > 0);
        if (control_ && rule == rule_) return;
        rule_ = rule;
        control_.emplace(options_of(rule));
        allowed_.set(control_->depth());
    }

    // For a fom of the data lane.
    bool has_room() const {
        const bool is_below = !rule_.io_wait_goal || weight_ < control_->depth();
        return is_below && running_.get() < rule_.max_foms;
    }
    std::uint32_t max_foms() const { return rule_.max_foms; }
    // For a fom of the control lane.
    bool has_control_room() const { return control_foms_ < kControlFomsMax; }
    void began(const Load& load) {
        come_back(load);
        if (is_data(load)) control_->began(weight_);
    }
    // `load` is the same as for began().
    void ended(const Load& load, Duration io_wait) {
        leave(load);
        if (!is_data(load)) return;
        control_->ended(io_wait, io_sched::weight_of(load.size_bytes));
        allowed_.set(control_->depth());
    }
    // The fom continues to run, but does not count while it waits for its client or for another
    // fop.
    void leave(const Load& load) {
        if (!is_data(load)) {
            --control_foms_;
            return;
        }
        running_.set(running_.get() - 1);
        weight_ -= io_sched::weight_of(load.size_bytes);
    }
    // The fom counts again, whether there is room or not.
    void come_back(const Load& load) {
        if (!is_data(load)) {
            ++control_foms_;
            return;
        }
        running_.add(1);
        weight_ += io_sched::weight_of(load.size_bytes);
    }

    // Any thread. The foms of the data lane, without those that called leave().
    std::uint64_t running() const { return running_.get(); }
    // The present limit of the total weight.
    std::uint64_t allowed() const { return allowed_.get(); }

private:
    // The limit is never lower: foms may be waiting for something other than devices.
    static constexpr std::uint32_t kMin = 16;
    static constexpr std::uint32_t kControlFomsMax = 64;
    // The mean weight of a fom for which the limit leaves room.
    static constexpr std::uint32_t kWeightMax = 4;

    static bool is_data(const Load& load) { return load.lane == lrs::Lane::kData; }
    static io_sched::DepthOptions options_of(const AdmissionRule& rule) {
        const std::uint32_t max = kWeightMax * rule.max_foms;
        return {.latency_goal = rule.io_wait_goal.value_or(Duration::max()),
                .min = std::min(kMin, max),
                .max = max,
                .start = max};
    }

    AdmissionRule rule_;
    std::optional<io_sched::DepthControl> control_;
    std::uint64_t weight_ = 0;  // Total weight of the running foms.
    core::Counter running_;
    std::uint32_t control_foms_ = 0;
    core::Counter allowed_;
};

}  // namespace fopd::reqh
