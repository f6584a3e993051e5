#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/counter.h"
#include "core/histogram.h"
#include "core/result.h"
#include "core/time.h"

namespace fopd::devices {

enum class DeviceState : std::uint8_t {
    kGood,
    kSuspect,   // Works, but had failed reads or slow operations recently.
    kReadOnly,  // Recent writes may be lost. Permanent until a restart.
};
const char* to_string(DeviceState state);

enum class DeviceOp : std::uint8_t { kRead, kWrite, kFlush, kDiscard };
inline constexpr std::size_t kDeviceOpCount = 4;
const char* to_string(DeviceOp op);

struct HealthRule {
    Duration slow_after = 1s;      // An operation that takes longer is slow.
    std::uint32_t slow_count = 3;  // This many slow ones within `memory` make a device suspect.
    Duration memory = 10min;       // How long it stays suspect after the last cause; then the next
                                   // operation that succeeds makes it good.
    Duration stuck_after = 10s;    // An operation that has not ended after this time, or at most
                                   // twice that, counts as stuck.
};

// Statistics of a device's operations, and the health state derived from them. The caller passes
// the time. One thread writes; any thread may read the figures, state() and reason().
class Health {
public:
    struct Figures {
        core::Counter count;   // Ended, including failed ones.
        core::Counter errors;  // Errors of the device; not invalid requests or cancellations.
        core::Counter bytes;   // Bytes of successful operations.
        core::Counter slow;
        core::Histogram latency;
    };
    struct Ended {
        DeviceOp op;
        std::uint64_t size_bytes = 0;
        Duration took{};
        Result<void> result;
    };

    explicit Health(HealthRule rule = {}) : rule_(rule) {}

    // Returns true if the state has changed.
    bool ended(const Ended& what, Instant now);
    // Problems found by other code: wrong bytes, a broken log. `reason` is a literal. Return true
    // if the state has changed.
    bool mark_suspect(const char* reason, Instant now);
    bool mark_read_only(const char* reason);
    // Whether an operation that succeeds would make a suspect device good.
    bool may_be_good(Instant now) const {
        return state() == DeviceState::kSuspect && now >= suspect_until_;
    }

    DeviceState state() const { return state_.load(std::memory_order_relaxed); }
    // The reason for the state; empty if good.
    const char* reason() const { return reason_.load(std::memory_order_relaxed); }
    const Figures& of(DeviceOp op) const { return figures_[static_cast<std::size_t>(op)]; }

private:
    bool change(DeviceState state, const char* reason);
    bool note_slow(Instant now);
    bool forgive(Instant now);

    const HealthRule rule_;
    std::array<Figures, kDeviceOpCount> figures_;
    std::atomic<DeviceState> state_ = DeviceState::kGood;
    std::atomic<const char*> reason_ = "";
    Instant suspect_until_{};
    std::vector<Instant> slow_lately_;  // The last `slow_count` slow operations, oldest first.
};

}  // namespace fopd::devices
