#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/time.h"

namespace fopd::library {

// A pool whose objects are kept on cartridges.
struct TapePoolOptions {
    std::string name = {};
    // The pool of disks on which uploads land, and to which recalls bring objects back.
    std::string staging = {};
    // On how many cartridges each object is.
    std::uint32_t copies = 1;
    // A batch is written when objects of a collection that wait for it are so many bytes, so many,
    // or have waited for so long.
    std::uint64_t migrate_bytes = 16ULL << 30;
    std::uint32_t migrate_files = 20'000;
    Duration migrate_age = 10min;
    // Once a staging disk is fuller than `high`, objects that are on tape leave it until it is less
    // full than `low`. In percent; 0 for `high`: never.
    std::uint32_t staging_high = 80;
    std::uint32_t staging_low = 60;
};

enum class LibraryKind : std::uint8_t { kVirtual, kScsi };
enum class LibraryTiming : std::uint8_t { kNone, kCalculate, kReal };

// The tape library of a node.
struct LibraryOptions {
    std::string name = {};
    LibraryKind kind = LibraryKind::kVirtual;
    std::string path = {};  // The directory of a virtual library, or the device of a changer.
    std::vector<std::string> drive_paths = {};  // The devices of the drives, of a SCSI library.
    // Of a virtual library that is made: its drives and cartridges.
    std::uint32_t drives = 2;
    std::uint32_t cartridges = 8;
    std::string model = "lto9";
    // Replaces the model's capacity; 0: it does not.
    std::uint64_t cartridge_bytes = 0;
    LibraryTiming timing = LibraryTiming::kNone;
    // A blank cartridge gets a label when objects need one. Otherwise only an administrator has it
    // labelled: in a library that others use, too, it may be theirs.
    bool labels_blank = true;
    std::vector<TapePoolOptions> pools = {};
};

}  // namespace fopd::library
