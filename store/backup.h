#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "store/index.h"
#include "store/schema.h"

namespace fopd::store {

// A backup file has the data that a node keeps outside of its disks' logs: the tables of slots and
// of media, and the indexes. See docs/formats/backup.md for the layout: a head, then numbered
// chunks with checksums, the last of them kEnd.

inline constexpr std::size_t kBackupHeadBytes = 48;
inline constexpr std::size_t kBackupChunkHeadBytes = 16;
inline constexpr std::uint32_t kBackupChunkBytesMax = 1U << 20;

struct BackupHead {
    std::array<std::byte, 16> node{};
    WallTime made{};
    std::uint32_t schema_version =
        kSchema.version;     // The version of the schema of keys and values.
    bool has_media = false;  // Older versions refuse such a backup.
};

// A tree of a backup: the index of a disk, or of a part of the names.
struct BackupTree {
    enum class Kind : std::uint8_t { kIndex = 1, kNames = 2 } kind = Kind::kIndex;
    std::uint32_t part = 0;             // For kNames: which part.
    std::array<std::byte, 16> owner{};  // The id of the disk or, for kNames, of the node.
    std::uint64_t applied = 0;          // See Index::applied().

    friend bool operator==(const BackupTree&, const BackupTree&) = default;
};

enum class BackupChunk : std::uint32_t {
    kSlots = 1,    // The table of slots, as text. At most one, before all trees.
    kTree = 2,     // A tree begins.
    kEntries = 3,  // Entries of the tree, by ascending key.
    kTreeEnd = 4,  // The tree ends.
    kEnd = 5,
    kMedia = 6,  // A part of the table of media, as text; if the head says so, before all trees.
};

// Writes a backup into memory. The caller takes bytes() and clears it at any time.
//
//     BackupWriter writer(head);
//     writer.begin_tree(tree);
//     writer.entry(entry);  // By ascending key.
//     writer.end_tree();
//     writer.end();
class BackupWriter {
public:
    explicit BackupWriter(const BackupHead& head);

    // REQUIRES: calls in the order of a backup: slots, media, trees, end; the limits of index.h.
    void slots(std::string_view text);
    // REQUIRES: the head says so.
    void media(std::string_view text);
    void begin_tree(const BackupTree& tree);
    void entry(const IndexEntry& entry);
    void end_tree();
    void end();

    // The finished chunks since the last clear().
    Bytes bytes() const { return ready_; }
    void clear() { ready_.clear(); }

private:
    void chunk(BackupChunk kind, Bytes payload);
    void end_entries();

    std::vector<std::byte> ready_;
    std::vector<std::byte> entries_;  // The entries of the unfinished chunk.
    std::uint64_t entry_count_ = 0;   // The number of entries of the current tree.
    std::uint32_t chunk_count_ = 0;
};

// Iterates over the entries of a kEntries chunk.
class BackupEntries {
public:
    explicit BackupEntries(Bytes payload) : rest_(payload) {}
    // None at the end; kCorrupt: not an entry. Borrowed from the payload.
    Result<std::optional<IndexEntry>> next();

private:
    Bytes rest_;
};

// Parses a backup chunk by chunk. Checks everything: it accepts only backups that BackupWriter
// could have written. Each call gets the bytes that come next in the file.
class BackupReader {
public:
    // kUnsupported: written by a newer fopd; kCorrupt, here and below: not a valid backup.
    Result<BackupHead> head(Bytes bytes);

    struct ChunkHead {
        BackupChunk kind{};
        std::uint32_t payload_bytes = 0;  // The size of the payload that follows.
        std::uint32_t checksum = 0;
    };
    // REQUIRES: kBackupChunkHeadBytes bytes; the head was read, and ended() is false.
    Result<ChunkHead> chunk_head(Bytes bytes) const;
    // Returns the tree that begins here, if one does. REQUIRES: as many bytes as `head` says.
    Result<std::optional<BackupTree>> payload(const ChunkHead& head, Bytes bytes);

    // The last chunk was read; nothing may follow.
    bool ended() const { return state_ == State::kEnded; }

private:
    enum class State : std::uint8_t { kStart, kBetweenTrees, kInTree, kEnded };

    Result<void> take_entries(Bytes bytes);

    State state_ = State::kStart;
    bool wants_media_ = false;  // The head says that there are some, and none were read yet.
    bool may_have_media_ = false;
    std::uint32_t chunk_count_ = 0;
    std::uint64_t entry_count_ = 0;
    std::vector<std::byte> last_key_;
};

}  // namespace fopd::store
