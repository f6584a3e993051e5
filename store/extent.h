#pragma once

#include <cstdint>
#include <span>

namespace fopd::store {

// Blocks have 4 KiB, in objects and on disks alike.
inline constexpr std::uint64_t kObjectBytesMax = 1ULL << 60;
inline constexpr std::uint64_t kObjectBlocksMax = kObjectBytesMax / 4096;
// 1 MiB. Limits the size of a value of the index and of a record of the log.
inline constexpr std::uint32_t kExtentBlocksMax = 256;

// Consecutive blocks of a disk, whatever they hold.
struct DiskRange {
    std::uint64_t block = 0;
    std::uint32_t count = 0;

    friend bool operator==(const DiskRange&, const DiskRange&) = default;
};

// Consecutive blocks of an object that lie consecutively on a disk, with the CRC32C of each. The
// checksums are borrowed.
struct Extent {
    std::uint64_t first = 0;  // In the object.
    std::uint64_t block = 0;  // On the disk.
    std::span<const std::uint32_t> checksums{};

    std::uint32_t count() const { return static_cast<std::uint32_t>(checksums.size()); }
    std::uint64_t end() const { return first + checksums.size(); }
};

// Blocks of an object.
struct BlockRange {
    std::uint64_t first = 0;
    std::uint64_t count = 0;

    std::uint64_t end() const { return first + count; }
    friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

}  // namespace fopd::store
