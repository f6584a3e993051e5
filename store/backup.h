#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "store/index.h"
#include "store/schema.h"

namespace fopd::store {

// What a node keeps beside its disks, as bytes of a file; docs/formats/backup.md has the layout: a
// head, then chunks, each with its number and checksum, the last of which says that it is the last.

inline constexpr std::size_t kBackupHeadBytes = 48;
inline constexpr std::size_t kBackupChunkHeadBytes = 16;
inline constexpr std::uint32_t kBackupChunkBytesMax = 1U << 20;

struct BackupHead {
    std::array<std::byte, 16> node{};
    WallTime made{};
    std::uint32_t schema_version = kSchema.version;  // Of the keys and values of its indexes.
};

// An index, of a disk or of a part of the names.
struct BackupTree {
    enum class Kind : std::uint8_t { kIndex = 1, kNames = 2 } kind = Kind::kIndex;
    std::uint32_t part = 0;             // Of the names.
    std::array<std::byte, 16> owner{};  // The disk, or the node.
    std::uint64_t applied = 0;          // As in Index::applied().

    friend bool operator==(const BackupTree&, const BackupTree&) = default;
};

enum class BackupChunk : std::uint32_t {
    kSlots = 1,    // The table of slots, as text. At most one, before all trees.
    kTree = 2,     // Here one begins;
    kEntries = 3,  // some of its entries, by ascending key;
    kTreeEnd = 4,  // and here it ends.
    kEnd = 5,
};

// Makes the bytes of a backup, of which the caller takes what there is whenever it likes.
class BackupWriter {
public:
    explicit BackupWriter(const BackupHead& head);

    // Requires: the order of a backup, and the limits of index.h.
    void slots(std::string_view text);
    void begin_tree(const BackupTree& tree);
    void entry(const IndexEntry& entry);
    void end_tree();
    void end();

    // The finished chunks that have not been cleared.
    Bytes bytes() const { return ready_; }
    void clear() { ready_.clear(); }

private:
    void chunk(BackupChunk kind, Bytes payload);
    void end_entries();

    std::vector<std::byte> ready_;
    std::vector<std::byte> entries_;  // Of a chunk in the making.
    std::uint64_t entry_count_ = 0;   // Of the tree.
    std::uint32_t chunk_count_ = 0;
};

// The entries of a kEntries chunk.
class BackupEntries {
public:
    explicit BackupEntries(Bytes payload) : rest_(payload) {}
    // None at the end; kCorrupt for what is no entry. Borrowed from the payload.
    Result<std::optional<IndexEntry>> next();

private:
    Bytes rest_;
};

// Takes a backup apart, chunk by chunk in their order, and trusts none of it: what it has let
// through is what a writer made. Each call has the bytes that come next.
class BackupReader {
public:
    // kUnsupported: of a newer fopd; kCorrupt, here and below, for what is no backup.
    Result<BackupHead> head(Bytes bytes);

    struct ChunkHead {
        BackupChunk kind{};
        std::uint32_t payload_bytes = 0;  // That follow.
        std::uint32_t checksum = 0;
    };
    // Requires: kBackupChunkHeadBytes of them, after the head, and not behind the end.
    Result<ChunkHead> chunk_head(Bytes bytes) const;
    // Requires: as many bytes as the head said. Gives the tree that begins, if one does.
    Result<std::optional<BackupTree>> payload(const ChunkHead& head, Bytes bytes);

    // The last chunk was seen: nothing may follow.
    bool ended() const { return state_ == State::kEnded; }

private:
    enum class State : std::uint8_t { kStart, kBetweenTrees, kInTree, kEnded };

    Result<void> take_entries(Bytes bytes);

    State state_ = State::kStart;
    std::uint32_t chunk_count_ = 0;
    std::uint64_t entry_count_ = 0;
    std::vector<std::byte> last_key_;
};

}  // namespace fopd::store
