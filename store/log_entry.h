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

// What stands before the records of an entry, in 64 bytes; docs/formats/log.md. Behind them zeros
// up to a whole block.
struct EntryHeader {
    std::uint64_t epoch = 0;
    std::uint64_t seq = 0;
    std::uint64_t mark = 0;  // Everything up to here was flushed when this was written. Below seq.
    std::uint32_t payload_bytes = 0;
    std::uint32_t record_count = 0;
    std::uint32_t schema_version = 1;  // Of the records.

    friend bool operator==(const EntryHeader&, const EntryHeader&) = default;
};

inline constexpr std::size_t kEntryHeaderBytes = 64;

// How many blocks an entry with so many bytes of records takes.
constexpr std::uint32_t entry_blocks(std::uint32_t payload_bytes) {
    return static_cast<std::uint32_t>((kEntryHeaderBytes + payload_bytes + 4095ULL) / 4096);
}

// Completes an entry whose payload stands in its place already: writes the header, with the
// checksum over both, and the zeros. Requires: `entry` is entry_blocks(payload_bytes) blocks.
void seal_entry(std::span<std::byte> entry, const LogId& id, const EntryHeader& header);

// What may be the header of an entry of this log; nothing vouches for it yet but its first bytes
// and the id. Requires: a block.
std::optional<EntryHeader> peek_entry(std::span<const std::byte> block, const LogId& id);

// Whether the entry that begins these bytes is whole: as it was sealed. Requires: `header` is what
// peek_entry() found there. False also if the bytes end before the entry does.
bool entry_is_whole(std::span<const std::byte> bytes, const EntryHeader& header);

}  // namespace fopd::store
