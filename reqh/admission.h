#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/counter.h"
#include "core/ensure.h"
#include "core/time.h"
#include "io_sched/depth_control.h"

namespace fopd::reqh {

struct AdmissionRule {
    std::uint32_t max_foms = 128;
    // Fewer run while the reads and writes of one wait longer than this for their devices, on the
    // mean. None: it does not matter how long.
    std::optional<Duration> io_wait_goal = 1ms;

    friend bool operator==(const AdmissionRule&, const AdmissionRule&) = default;
};

// How many foms run at a time, so that what is more waits in the request scheduler, where the
// policy has a say, and not at the devices, where it has none. Where that is adapted to the
// devices, a fom counts once more for each 64 KiB it moves. Pure.
class Admission {
public:
    explicit Admission(const AdmissionRule& rule) { set(rule); }

    // What runs goes on. Begins anew to adapt when it is another rule.
    void set(const AdmissionRule& rule) {
        ENSURE(rule.max_foms > 0);
        if (control_ && rule == rule_) return;
        rule_ = rule;
        control_.emplace(options_of(rule));
        allowed_.set(control_->depth());
    }

    bool has_room() const {
        const bool is_below = !rule_.io_wait_goal || weight_ < control_->depth();
        return is_below && running_.get() < rule_.max_foms;
    }
    // For one of the control lane: few and short, they do not wait for what data waits for.
    bool has_control_room() const { return running_.get() < rule_.max_foms + kControlRoom; }
    void began(std::uint64_t size_bytes) {
        running_.add(1);
        weight_ += io_sched::weight_of(size_bytes);
        control_->began(weight_);
    }
    // As it began.
    void ended(std::uint64_t size_bytes, Duration io_wait) {
        leave(size_bytes);
        control_->ended(io_wait, io_sched::weight_of(size_bytes));
        allowed_.set(control_->depth());
    }
    // It runs on, and does not count while it waits for its client, or is parked.
    void leave(std::uint64_t size_bytes) {
        running_.set(running_.get() - 1);
        weight_ -= io_sched::weight_of(size_bytes);
    }
    // It does again, whether there is room or not.
    void come_back(std::uint64_t size_bytes) {
        running_.add(1);
        weight_ += io_sched::weight_of(size_bytes);
    }

    // Any thread. Without those that left.
    std::uint64_t running() const { return running_.get(); }
    // What the running ones may count together.
    std::uint64_t allowed() const { return allowed_.get(); }

private:
    // So many run whatever the devices do: others than they may be what foms wait for.
    static constexpr std::uint32_t kMin = 16;
    // Besides max_foms.
    static constexpr std::uint32_t kControlRoom = 16;
    // On the mean, of those that run.
    static constexpr std::uint32_t kWeightMax = 4;

    static io_sched::DepthOptions options_of(const AdmissionRule& rule) {
        const std::uint32_t max = kWeightMax * rule.max_foms;
        return {.latency_goal = rule.io_wait_goal.value_or(Duration::max()),
                .min = std::min(kMin, max),
                .max = max,
                .start = max};
    }

    AdmissionRule rule_;
    std::optional<io_sched::DepthControl> control_;
    std::uint64_t weight_ = 0;  // Of those that run.
    core::Counter running_;
    core::Counter allowed_;
};

}  // namespace fopd::reqh
