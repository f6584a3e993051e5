#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/extent.h"
#include "store/fid.h"

namespace fopd::store {

// A fault that a check of a disk has found.
struct CheckFinding {
    std::string reason{};  // A description for people.
    std::optional<Fid> object{};
    std::string name{};  // The name of the object, if the finding is about it.
    std::optional<std::uint64_t> object_block{};
    std::optional<DiskRange> range{};      // On the disk.
    std::optional<std::uint64_t> entry{};  // The number of an entry of the log.
};

// The counters and findings of a check of a disk, so far.
struct CheckReport {
    // How many findings are kept; further ones are only counted.
    static constexpr std::size_t kFindingsMax = 1000;

    std::uint64_t objects = 0;
    std::uint64_t uploads = 0;
    std::uint64_t cleared = 0;  // Cleared ranges.
    std::uint64_t replies = 0;
    std::uint64_t copies = 0;  // Copies of objects on cartridges.
    std::uint64_t recalls = 0;
    std::uint64_t extents = 0;
    std::uint64_t blocks = 0;  // The number of blocks of the extents.
    std::uint64_t names = 0;   // Known names of the disk's objects.
    std::uint64_t log_entries = 0;
    std::uint64_t log_records = 0;
    std::uint64_t finding_count = 0;
    std::vector<CheckFinding> findings{};
};

}  // namespace fopd::store
