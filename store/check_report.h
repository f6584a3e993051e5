#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/extent.h"
#include "store/fid.h"

namespace fopd::store {

// Something about a disk that should not be so.
struct CheckFinding {
    std::string reason{};  // In words, with what it is about.
    std::optional<Fid> object{};
    std::string name{};  // Of an object, if it is about that.
    std::optional<std::uint64_t> object_block{};
    std::optional<Place> place{};          // On the disk.
    std::optional<std::uint64_t> entry{};  // Of the log: its number.
};

// What a check of a disk has counted by now, and found.
struct CheckReport {
    // Of the findings; the others are only counted.
    static constexpr std::size_t kFindingsMax = 1000;

    std::uint64_t objects = 0;
    std::uint64_t uploads = 0;
    std::uint64_t cleared = 0;  // Ranges whose extents are still to go.
    std::uint64_t replies = 0;
    std::uint64_t extents = 0;
    std::uint64_t blocks = 0;  // Of these.
    std::uint64_t names = 0;   // Of the disk's objects, that are known.
    std::uint64_t log_entries = 0;
    std::uint64_t log_records = 0;
    std::uint64_t finding_count = 0;
    std::vector<CheckFinding> findings{};
};

}  // namespace fopd::store
