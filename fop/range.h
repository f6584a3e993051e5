#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"

namespace fopd::fop {

inline constexpr std::uint64_t kOffsetMax = 1ULL << 60;       // The largest end of an object.
inline constexpr std::uint64_t kBlockBytes = 4096;            // The most that a checksum covers.
inline constexpr std::size_t kRangesMax = 64;                 // Per fop.
inline constexpr std::uint64_t kTransferBytesMax = 4U << 20;  // Total of all ranges of one fop.
// Larger than any transfer of a fop on objects, so that a benchmark can tell network time from the
// cost per fop.
inline constexpr std::uint64_t kBulkEchoBytesMax = 16U << 20;

// A range of an object's bytes.
struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;

    constexpr std::uint64_t end() const { return offset + length; }
    friend bool operator==(const Range&, const Range&) = default;
};

// kInvalid with the reason as context: the range extends beyond kOffsetMax.
Result<void> check_range(const Range& range);
// kInvalid with the reason as context: there are too many ranges, or their total is too long.
Result<void> check_ranges(std::span<const Range> ranges);

// REQUIRES for all below: check_ranges() accepted the ranges.

std::uint64_t total_bytes(std::span<const Range> ranges);

// The part of a range before the end of an object of this size.
constexpr Range within(const Range& range, std::uint64_t size_bytes) {
    if (range.offset >= size_bytes) return {.offset = range.offset, .length = 0};
    const std::uint64_t left = size_bytes - range.offset;
    return {.offset = range.offset, .length = range.length < left ? range.length : left};
}

// A range is divided into runs of bytes at the object's block boundaries, and each run has a
// CRC32C: so the checksum of a whole block is used unchanged from the client's memory to the disk
// and back.
inline constexpr std::size_t kChecksumsMax = kTransferBytesMax / kBlockBytes + 2 * kRangesMax;

constexpr std::size_t count_checksums(const Range& range) {
    if (range.length == 0) return 0;
    return static_cast<std::size_t>((range.end() - 1) / kBlockBytes - range.offset / kBlockBytes +
                                    1);
}
std::size_t count_checksums(std::span<const Range> ranges);

// Computes the checksums of the runs of the ranges, whose bytes are concatenated in `data`.
// REQUIRES: as many bytes as the ranges have, and room for as many checksums as there are runs.
void checksum_ranges(std::span<const Range> ranges, std::span<const std::byte> data,
                     std::span<std::uint32_t> checksums);
// Whether the bytes match the checksums. REQUIRES: likewise.
bool ranges_intact(std::span<const Range> ranges, std::span<const std::byte> data,
                   std::span<const std::uint32_t> checksums);

}  // namespace fopd::fop
