#pragma once

#include <cstdint>

#include "core/metrics.h"
#include "daemon/node_disk.h"
#include "daemon/slot_table.h"

namespace fopd::daemon {

// Counts the damaged blocks of an open disk from its figures and from what its slot's entry has of
// earlier starts. Each block is counted once: a complete scrub replaces all earlier counts.
class DamageRecord {
public:
    struct State {
        std::int64_t scrubbed_at_s = 0;
        std::uint64_t damaged_blocks = 0;
    };
    // What the slot's entry must say now. `now_s` is Unix time.
    State next(const SlotEntry& entry, const NodeDisk::Figures& figures, std::int64_t now_s);

    // The disk's slot is empty for good, also while the disk closes.
    void release() { is_released_ = true; }
    bool is_released() const { return is_released_; }

    // Sets what collect() shows. The caller holds a lock that excludes collect().
    void show(const SlotEntry& entry);
    // From any thread, with the same lock.
    void collect(core::MetricSink& sink, const devices::DeviceSettings& settings) const;

private:
    bool is_known_ = false;  // Whether `before_` is set.
    bool is_released_ = false;
    std::uint64_t scrubs_done_ = 0;
    // Damaged blocks, without those that reads have met since the volume was opened.
    std::uint64_t before_ = 0;
    State shown_;
};

}  // namespace fopd::daemon
