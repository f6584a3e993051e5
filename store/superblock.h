#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "store/log_entry.h"

namespace fopd::store {

// A part of the disk that the log owns.
struct LogSegment {
    std::uint32_t number = 0;
    // Of its first entry; 0 while it has none.
    std::uint64_t first_seq = 0;

    friend bool operator==(const LogSegment&, const LogSegment&) = default;
};

// Of epochs before the present, the latest first; 0: not known, nor of those before.
using EarlierFirstSeqs = std::array<std::uint64_t, 5>;

// Where the log of a disk lies and from where it counts; docs/formats/log.md. There are two copies
// of it, written one after the other, each durable before the other is touched.
struct Superblock {
    LogId disk_id{};
    std::uint32_t schema_version = 0;
    std::uint32_t segment_blocks = 0;
    std::uint64_t generation = 0;  // Counts superblocks.
    std::uint64_t epoch = 0;       // Counts the times the log was opened to be written.
    // Entries from here on are of this epoch or leftovers; those before are of earlier ones.
    std::uint64_t epoch_first_seq = 0;
    // The first entries of the epochs before; each epoch ended where the next one began.
    EarlierFirstSeqs earlier_first_seqs{};
    std::uint64_t trusted_seq = 0;  // Everything up to here was flushed.
    bool clean = false;             // The log ended behind trusted_seq, and nothing was lost.
    // Of the oldest segment: what is of use in the entries up to here was committed again, durably.
    std::uint64_t cleaned_seq = 0;
    // In their order. What was written into them since this superblock is found out at replay.
    std::vector<LogSegment> segments{};

    friend bool operator==(const Superblock&, const Superblock&) = default;
};

inline constexpr std::size_t kSuperblockBytes = 64UL << 10;
inline constexpr std::uint32_t kSuperblockSegmentsMax = (kSuperblockBytes - 128) / 12;

// Returns how many bytes are to be written, whole blocks. Requires: kSuperblockBytes of room and no
// more segments than fit.
std::size_t encode_superblock(const Superblock& superblock, std::span<std::byte> out);

// kNotFound: no superblock was ever here; kUnsupported: of a newer format; kCorrupt: damaged, or
// its fields contradict each other. Requires: kSuperblockBytes.
Result<Superblock> parse_superblock(std::span<const std::byte> bytes);

}  // namespace fopd::store
