#pragma once

#include <cstdint>

#include "devices/disk.h"

namespace fopd::devices {

// What open() found. All calls here block; they belong on an Offload.
struct DiskFile {
    int fd = -1;
    Geometry geometry = {};
    bool is_block_device = false;
    int direct_errno = 0;  // Why the page cache is not passed by although it was to be.
    int thin_errno = 0;    // Why a new file has no space of its own although it was to have it.
};

// Opens, locks and measures a disk.
Result<DiskFile> open_disk_file(const DiskOptions& options);
// Gives the range's space back. kUnsupported where that cannot be done.
Result<void> discard_range(const DiskFile& file, std::uint64_t offset, std::uint64_t size_bytes);
// The first part of the range that has no written block of the file behind it; of no bytes when
// there is none. Requires: a regular file.
Result<Stretch> find_hole_in(const DiskFile& file, std::uint64_t offset, std::uint64_t size_bytes);
void close_disk_file(const DiskFile& file);

}  // namespace fopd::devices
