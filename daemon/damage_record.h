#pragma once

#include <cstdint>

#include "core/metrics.h"
#include "daemon/node_disk.h"
#include "daemon/slot_table.h"

namespace fopd::daemon {

// Counts the damaged blocks of an open disk: those that it has met since it was opened, and those
// of earlier starts, which are in its slot's entry. A complete scrub replaces all earlier counts,
// so each block is counted once. The entry has only their number: a block that was counted in an
// earlier start and is met again counts twice until the next complete scrub. The sum is too high
// rather than too low, so that new damage is always seen.
class DamageRecord {
public:
    struct State {
        std::int64_t scrubbed_at_s = 0;
        std::uint64_t damaged_blocks = 0;
    };
    // The counts to be written to the slot's entry now. `now_s` is Unix time.
    State next(const SlotEntry& entry, const NodeDisk::Figures& figures, std::int64_t now_s);

    // The damaged blocks that next() would count now.
    std::uint64_t damaged_blocks(const SlotEntry& entry, const NodeDisk::Figures& figures) const;

    // Called when the disk is removed: its slot is empty from now on, although the disk is still
    // closing.
    void release() { is_released_ = true; }
    bool is_released() const { return is_released_; }

    // Sets the counts that collect() shows. The caller holds a lock that excludes collect().
    void show(const SlotEntry& entry);
    // From any thread, with the same lock.
    void collect(core::MetricSink& sink, const devices::DeviceSettings& settings) const;

private:
    // The damaged blocks that were known before those that reads have met since. `scrubs_done` was
    // read before the other figures, as a scrub sets it after them.
    std::uint64_t damage_before(const SlotEntry& entry, const NodeDisk::Figures& figures,
                                std::uint64_t scrubs_done) const;

    bool is_known_ = false;  // Whether `before_` is set.
    bool is_released_ = false;
    std::uint64_t scrubs_done_ = 0;
    // The damaged blocks that are known from before the volume was opened.
    std::uint64_t before_ = 0;
    State shown_;
};

}  // namespace fopd::daemon
