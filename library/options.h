#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/time.h"

namespace fopd::library {

// A tape pool: its objects are kept on cartridges.
struct TapePoolOptions {
    std::string name = {};
    // The pool of disks on which uploads land, and to which recalls bring objects back.
    std::string staging = {};
    // How many cartridges get a copy of each object.
    std::uint32_t copies = 1;
    // The waiting objects of a collection are written when they have so many bytes, when there are
    // so many of them, or when the oldest has waited for so long.
    std::uint64_t migrate_bytes = 16ULL << 30;
    std::uint32_t migrate_files = 20'000;
    Duration migrate_age = 10min;
    // A larger object is written in pieces of so many bytes, which may go to different cartridges.
    // A whole number of blocks.
    std::uint64_t piece_bytes = 64ULL << 30;
    // When a staging disk is fuller than `high`, objects that are on tape are released until it is
    // less full than `low`. In percent; 0 for `high`: never.
    std::uint32_t staging_high = 80;
    std::uint32_t staging_low = 60;
};

// After how many failures something is out of use.
struct HealthLimits {
    // A drive: in a row, with several cartridges, or with cartridges that other drives can use.
    std::uint32_t drive_failures = 3;
    // A cartridge that no other drive has tried: in one drive, then it is not written any more.
    std::uint32_t cartridge_failures = 2;
};

enum class LibraryKind : std::uint8_t { kVirtual, kScsi };
enum class LibraryTiming : std::uint8_t { kNone, kCalculate, kReal };

// The tape library of a node.
struct LibraryOptions {
    std::string name = {};
    LibraryKind kind = LibraryKind::kVirtual;
    std::string path = {};  // The directory of a virtual library, or the device of a changer.
    std::vector<std::string> drive_paths = {};  // The devices of a SCSI library's drives.
    // The number of drives and cartridges with which a virtual library is made.
    std::uint32_t drives = 2;
    std::uint32_t cartridges = 8;
    std::string model = "lto9";
    // The capacity of virtual cartridges; 0: the capacity of the model.
    std::uint64_t cartridge_bytes = 0;
    LibraryTiming timing = LibraryTiming::kNone;
    // The library labels a blank cartridge when objects need one. If false, only administrators do:
    // the blank cartridges of a shared library may belong to other programs.
    bool labels_blank = true;
    HealthLimits health = {};
    std::vector<TapePoolOptions> pools = {};
};

}  // namespace fopd::library
