#pragma once

#include <cstdint>

#include "devices/disk.h"

namespace fopd::devices {

// The result of open(). All calls here block, and belong on an Offload.
struct DiskFile {
    int fd = -1;
    Geometry geometry = {};
    bool is_block_device = false;
    int direct_errno = 0;  // Why the page cache is used although it should be bypassed.
    int thin_errno = 0;    // Why space for a new file was not allocated although it should be.
};

// Opens, locks and measures a disk. Waits for a disk that a killed process still holds.
Result<DiskFile> open_disk_file(const DiskOptions& options);
// Frees the range's space. kUnsupported if that is not possible.
Result<void> discard_range(const DiskFile& file, std::uint64_t offset, std::uint64_t size_bytes);
// The first part of the range for which the file has no written block; empty if there is none.
// REQUIRES: a regular file.
Result<Stretch> find_hole_in(const DiskFile& file, std::uint64_t offset, std::uint64_t size_bytes);
void close_disk_file(const DiskFile& file);

}  // namespace fopd::devices
