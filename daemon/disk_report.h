#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/metrics.h"
#include "daemon/json_writer.h"
#include "daemon/node_disk.h"

namespace fopd::daemon {

// A disk as shown to administrators.
struct DiskReport {
    std::string name = {};
    devices::Family family = devices::Family::kDisk;
    std::string pool = {};
    std::string path = {};
    // opening, good, suspect, read-only, given-up, closed, removed, missing
    const char* state = "";
    bool read_only = false;
    std::string reason = {};  // Why it is not in state good.
    // Empty while unknown.
    std::optional<std::uint64_t> capacity_bytes = {};
    std::optional<std::uint64_t> free_bytes = {};
    std::optional<store::Slot> slot = {};
    std::string disk = {};  // Its id.
    std::uint32_t locality = 0;
    std::uint64_t errors = 0;
    // The state and the figures of its newest scrub.
    const char* scrub = "";  // never, running, done, ended, failed
    std::uint64_t scrub_total_bytes = 0;
    std::uint64_t scrub_read_bytes = 0;
    std::uint64_t scrub_damaged_blocks = 0;
    std::uint64_t check_findings = 0;  // The number of findings of its newest check.
    // Damaged blocks that its last complete scrub found, and those that were read since.
    std::uint64_t damaged_blocks = 0;
    // The end of that scrub, or when the disk was taken; 0 if unknown. Unix time.
    std::int64_t scrubbed_at_s = 0;
};

// Facts about a disk that its locality may be changing; as of its last task.
struct DiskFacts {
    std::string reason = {};
    std::optional<store::Slot> slot = {};
    std::string disk = {};
};
DiskReport report_of(const NodeDisk& disk, const DiskFacts& facts);
void write_disk(JsonWriter& json, const DiskReport& disk);
// From any thread.
void collect_disk(core::MetricSink& sink, const NodeDisk& disk);

}  // namespace fopd::daemon
