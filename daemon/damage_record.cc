#include "daemon/damage_record.h"

#include <array>
#include <utility>

namespace fopd::daemon {

DamageRecord::State DamageRecord::next(const SlotEntry& entry, const NodeDisk::Figures& figures,
                                       std::int64_t now_s) {
    const std::uint64_t scrubs_done = figures.scrubs_done.get();
    before_ = damage_before(entry, figures, scrubs_done);
    is_known_ = true;
    const std::int64_t scrubbed_at_s =
        scrubs_done != std::exchange(scrubs_done_, scrubs_done) ? now_s : entry.scrubbed_at_s;
    return {.scrubbed_at_s = scrubbed_at_s, .damaged_blocks = before_ + figures.met_damage.get()};
}

std::uint64_t DamageRecord::damaged_blocks(const SlotEntry& entry,
                                           const NodeDisk::Figures& figures) const {
    return damage_before(entry, figures, figures.scrubs_done.get()) + figures.met_damage.get();
}

std::uint64_t DamageRecord::damage_before(const SlotEntry& entry, const NodeDisk::Figures& figures,
                                          std::uint64_t scrubs_done) const {
    if (scrubs_done != scrubs_done_) return figures.scrub_done_damage.get();
    return is_known_ ? before_ : entry.damaged_blocks;
}

void DamageRecord::show(const SlotEntry& entry) {
    shown_ = {.scrubbed_at_s = entry.scrubbed_at_s, .damaged_blocks = entry.damaged_blocks};
}

void DamageRecord::collect(core::MetricSink& sink, const devices::DeviceSettings& settings) const {
    if (shown_.scrubbed_at_s == 0) return;
    const std::array labels{core::Label{"device", settings.name},
                            core::Label{"pool", settings.pool}};
    sink.gauge("fopd_device_damaged_blocks",
               "Damaged blocks that the last complete scrub found, and that were read since.",
               labels, static_cast<double>(shown_.damaged_blocks));
    sink.gauge("fopd_device_scrubbed_timestamp_seconds",
               "When the last complete scrub ended, or the disk was taken. Unix time.", labels,
               static_cast<double>(shown_.scrubbed_at_s));
}

}  // namespace fopd::daemon
