#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/time.h"
#include "store/schema.h"

namespace fopd::store {

struct LogOptions {
    std::array<std::byte, 16> disk_id{};
    Schema schema = kSchema;  // The schema of the records. A log with a newer schema is not opened.
    std::uint32_t segment_blocks = 256;
    std::uint32_t segments_max = 4;   // The log grows by itself up to this; see set_segments_max().
    Duration flush_interval = 100ms;  // Until buffered commits are durable and a mark is written.
    // How long an entry gathers commits while another one is not durable.
    Duration gather_time = 1ms;
    bool fills_holes = true;              // Writes zeros ahead of the log on disks with slow holes.
    std::uint32_t entry_blocks_max = 64;  // 256 KiB.
    std::uint32_t entries_in_flight_max = 3;  // Closed and not durable, not counting full entries.
};

}  // namespace fopd::store
