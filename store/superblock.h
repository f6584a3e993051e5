#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "store/log_entry.h"

namespace fopd::store {

// A segment of the disk that the log owns.
struct LogSegment {
    std::uint32_t number = 0;
    // The number of its first entry; 0: it has none.
    std::uint64_t first_seq = 0;

    friend bool operator==(const LogSegment&, const LogSegment&) = default;
};

// The first entries of earlier epochs, the latest epoch first. 0: not known, and nor are those
// before.
using EarlierFirstSeqs = std::array<std::uint64_t, 5>;

// Where the log of a disk lies and which of its entries are valid; see docs/formats/log.md. There
// are two copies, written one after the other: the second is not touched before the first is
// durable.
struct Superblock {
    LogId disk_id{};
    std::uint32_t schema_version = 0;
    std::uint32_t segment_blocks = 0;
    std::uint64_t generation = 0;  // Counts superblocks.
    std::uint64_t epoch = 0;       // Counts how often the log was opened to be written.
    // Entries from here on are of this epoch or leftovers of an earlier life; those before are of
    // earlier epochs.
    std::uint64_t epoch_first_seq = 0;
    // Each earlier epoch ended where the next one began.
    EarlierFirstSeqs earlier_first_seqs{};
    std::uint64_t trusted_seq = 0;  // The entries up to this one and their data were flushed.
    bool clean = false;  // The log was closed: it ends at trusted_seq, and nothing is lost.
    // In the oldest segment: the live records of entries up to this one were committed again,
    // durably.
    std::uint64_t cleaned_seq = 0;
    // In the order of the log. Replay finds the entries that were written into them since this
    // superblock.
    std::vector<LogSegment> segments{};

    friend bool operator==(const Superblock&, const Superblock&) = default;
};

inline constexpr std::size_t kSuperblockBytes = 64UL << 10;
inline constexpr std::uint32_t kSuperblockSegmentsMax = (kSuperblockBytes - 128) / 12;

// Returns the number of bytes to write, whole blocks. REQUIRES: `out` has kSuperblockBytes, and the
// segments fit.
std::size_t encode_superblock(const Superblock& superblock, std::span<std::byte> out);

// kNotFound: no superblock was ever written here; kUnsupported: a newer format; kCorrupt: damaged,
// or its fields contradict each other. REQUIRES: kSuperblockBytes.
Result<Superblock> parse_superblock(std::span<const std::byte> bytes);

}  // namespace fopd::store
