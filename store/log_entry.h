#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fopd::store {

// Identifies the log: the id of its disk. A disk that is formatted again gets a new id, so that
// entries of its earlier log are never taken for entries of the new one.
using LogId = std::array<std::byte, 16>;

// The header of an entry, 64 bytes before its records; see docs/formats/log.md. Zeros after the
// records fill the last block.
struct EntryHeader {
    std::uint64_t epoch = 0;
    std::uint64_t seq = 0;
    // When this was written, all entries up to here were flushed. Less than seq.
    std::uint64_t mark = 0;
    std::uint32_t payload_bytes = 0;
    std::uint32_t record_count = 0;
    std::uint32_t schema_version = 1;  // The schema of the records.

    friend bool operator==(const EntryHeader&, const EntryHeader&) = default;
};

inline constexpr std::size_t kEntryHeaderBytes = 64;

// How many blocks an entry with so many bytes of records takes.
constexpr std::uint32_t entry_blocks(std::uint32_t payload_bytes) {
    return static_cast<std::uint32_t>((kEntryHeaderBytes + payload_bytes + 4095ULL) / 4096);
}

// Completes an entry whose payload is in its place: writes the header, with the checksum of both,
// and the zeros. REQUIRES: `entry` has entry_blocks(payload_bytes) blocks.
void seal_entry(std::span<std::byte> entry, const LogId& id, const EntryHeader& header);

// Returns the header if the block begins with the magic number and the id of this log. Its other
// fields are not checked yet. REQUIRES: one block.
std::optional<EntryHeader> peek_entry(std::span<const std::byte> block, const LogId& id);

// Whether the checksum of the entry is right. False also if `bytes` ends before the entry does.
// REQUIRES: `header` is what peek_entry() returned for these bytes.
bool entry_is_whole(std::span<const std::byte> bytes, const EntryHeader& header);

}  // namespace fopd::store
