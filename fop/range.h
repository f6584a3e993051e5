#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"

namespace fopd::fop {

inline constexpr std::uint64_t kOffsetMax = 1ULL << 60;       // Where an object may end.
inline constexpr std::uint64_t kBlockBytes = 4096;            // What a checksum covers at most.
inline constexpr std::size_t kRangesMax = 64;                 // Of one fop.
inline constexpr std::uint64_t kTransferBytesMax = 4U << 20;  // All ranges of one fop together.
// More than any fop on objects moves, so that a benchmark can tell the time of the network from the
// cost of each fop.
inline constexpr std::uint64_t kBulkEchoBytesMax = 16U << 20;

// Bytes of an object.
struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;

    constexpr std::uint64_t end() const { return offset + length; }
    friend bool operator==(const Range&, const Range&) = default;
};

// kInvalid with the reason as its context: it reaches beyond kOffsetMax.
Result<void> check_range(const Range& range);
// Likewise: there are too many, or they are too long together.
Result<void> check_ranges(std::span<const Range> ranges);

// Requires of all below: check_ranges() took the ranges.

std::uint64_t total_bytes(std::span<const Range> ranges);

// The part of a range that lies before the end of an object of this size.
constexpr Range within(const Range& range, std::uint64_t size_bytes) {
    if (range.offset >= size_bytes) return {.offset = range.offset, .length = 0};
    const std::uint64_t left = size_bytes - range.offset;
    return {.offset = range.offset, .length = range.length < left ? range.length : left};
}

// A range is cut into pieces where the blocks of the object end, and each piece has its CRC32C: so
// a checksum of a whole block goes with it from the memory of a client to the medium and back.
inline constexpr std::size_t kPiecesMax = kTransferBytesMax / kBlockBytes + 2 * kRangesMax;

constexpr std::size_t count_pieces(const Range& range) {
    if (range.length == 0) return 0;
    return static_cast<std::size_t>((range.end() - 1) / kBlockBytes - range.offset / kBlockBytes +
                                    1);
}
std::size_t count_pieces(std::span<const Range> ranges);

// The checksums of the pieces of the ranges, whose bytes lie one behind the other in `data`.
// Requires: as many bytes as the ranges have, room for as many checksums as there are pieces.
void checksum_pieces(std::span<const Range> ranges, std::span<const std::byte> data,
                     std::span<std::uint32_t> checksums);
// Whether the bytes are those that the checksums were computed of. Requires: likewise.
bool pieces_intact(std::span<const Range> ranges, std::span<const std::byte> data,
                   std::span<const std::uint32_t> checksums);

}  // namespace fopd::fop
