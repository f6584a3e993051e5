#include "store/settings.h"

#include "config/types.h"

namespace fopd::store {

config::Section<StoreSettings> store_section() {
    config::Section<StoreSettings> section("store", "How objects are kept on disks.");
    section.field("flush_interval", &StoreSettings::flush_interval,
                  config::duration({.min = 1ms, .max = 1min}),
                  "How long a buffered write may wait before it is made durable.");
    section.field("checkpoint_interval", &StoreSettings::checkpoint_interval,
                  config::duration({.min = 100ms, .max = 1h}),
                  "How often changes are moved from memory into the index. Changes that are not in "
                  "the index are read from the log at the next start.");
    section.field("upload_timeout", &StoreSettings::upload_timeout,
                  config::duration({.min = 1s, .max = 30 * 24h}),
                  "An upload that received no write for this time is removed.");
    section.field("overlay", &StoreSettings::overlay_bytes,
                  config::size({.min = 1ULL << 20, .max = 4ULL << 30}),
                  "Memory of each disk for changes that are not in its index yet. When it is full, "
                  "they are moved to the index earlier.");
    section.field("scrub_rate", &StoreSettings::scrub_bytes_per_second,
                  config::size({.min = 4096, .max = 1ULL << 40}),
                  "How many bytes per second a scrub reads of each disk, at most.");
    section.field(
        "scrub_age_max", &StoreSettings::scrub_age_max, config::duration({.max = 1000 * 24h}),
        "fopctl health warns of a disk whose last complete scrub ended longer ago. 0s: it "
        "never does. The alert FopdScrubOld in fopd.rules.yml has 35 days of its own.");
    section.field("coalesce_rate", &StoreSettings::coalesce_bytes_per_second,
                  config::size({.max = 1ULL << 40}),
                  "How many bytes per second of each locality's disks are read and written again, "
                  "at most, to move the blocks of objects together that short overwrites have "
                  "scattered; only while nothing else changes on the disk. 0: never.");
    section.field("zeros_ahead", &StoreSettings::zeros_ahead_bytes,
                  config::size({.max = 16ULL << 30}),
                  "For disks that are files on ext4 or XFS: how many bytes of zeros are written "
                  "ahead of the data, because a short write to space that was never written costs "
                  "about twice as much. 0: none.");
    section.field("discard", &StoreSettings::discard, config::boolean(),
                  "Whether space that has been free for a minute is discarded, a segment at a "
                  "time: given back to the disk, or to the file system if the disk is a file. For "
                  "disks that share their space with others. The log names disks that cannot.");
    return section;
}

}  // namespace fopd::store
