#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/index.h"
#include "store/object.h"

namespace fopd::store {

// The records of the log, as bytes; see docs/formats/record.md. Records follow each other without
// gaps in the payload of an entry, which has the checksum.
enum class RecordKind : std::uint8_t {
    kPut = 1,     // Stores a value of the index: an object, an upload, a reply.
    kExtent = 2,  // Blocks of an object, where they are on the disk, and their checksums.
    kPunch = 3,   // Blocks of an object become a hole, and the blocks of the disk become free.
    kRemove = 4,  // An object or an upload is removed.
    kCommit = 5,  // An upload becomes an object, with this value.
    kForget = 6,  // A recorded reply is removed.
    kClear = 7,   // Blocks become a hole; a later kPunch frees the blocks of the disk.
};

// A set of blocks of an extent, by their distance from its first block.
using ExtentBlocks = std::bitset<kExtentBlocksMax>;

struct Record {
    RecordKind kind{};
    // Used by kExtent, kPunch, kClear and kRemove.
    Fid fid{};
    // Used by kExtent, kPunch and kClear.
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    // Used by kExtent. `dead` lists the blocks that the record leaves out, by their distance from
    // `first`, ascending. Each other block has a checksum, little endian, unaligned.
    std::uint64_t block = 0;
    Bytes dead{};
    Bytes checksums{};
    // Used by kPut, kCommit and kForget.
    Bytes key{};
    Bytes value{};
};

// Iterates over the runs of consecutive live blocks of a kExtent record.
class ExtentRuns {
public:
    explicit ExtentRuns(const Record& record);

    // None at the end. The checksums are valid until the next call.
    std::optional<Extent> next();

private:
    bool is_dead(std::uint64_t distance) const;

    const Record& record_;
    std::uint64_t distance_ = 0;
    std::size_t dead_passed_ = 0;
    std::size_t checksums_read_ = 0;
    std::array<std::uint32_t, kExtentBlocksMax> checksums_;
};

// Appends records to a buffer, whose memory clear() keeps.
class RecordWriter {
public:
    void put(Bytes key, Bytes value) { key_value(RecordKind::kPut, key, value); }
    void extent(Fid fid, const Extent& extent);
    // Appends the blocks `live` of a kExtent record; the result is never longer than that record.
    // REQUIRES: at least one block, and all of them are in the record.
    void rest_of_extent(const Record& record, const ExtentBlocks& live);
    void punch(Fid fid, std::uint64_t first, std::uint64_t count) {
        hole(RecordKind::kPunch, fid, first, count);
    }
    void clear_range(Fid fid, std::uint64_t first, std::uint64_t count) {
        hole(RecordKind::kClear, fid, first, count);
    }
    void remove(Fid fid);
    void commit(Bytes key, Bytes value) { key_value(RecordKind::kCommit, key, value); }
    void forget(Bytes key) { key_value(RecordKind::kForget, key, {}); }
    // Appends the bytes of a record that a RecordReader has read, unchanged.
    void copy(Bytes record);

    Bytes bytes() const { return bytes_; }
    std::uint32_t count() const { return count_; }
    void clear() {
        bytes_.clear();
        count_ = 0;
    }

private:
    std::byte* begin(RecordKind kind, std::size_t body_bytes);
    void hole(RecordKind kind, Fid fid, std::uint64_t first, std::uint64_t count);
    void key_value(RecordKind kind, Bytes key, Bytes value);

    std::vector<std::byte> bytes_;
    std::uint32_t count_ = 0;
};

// Upper bounds of the encoded sizes of records.
inline constexpr std::size_t kRecordHeadBytes = 4;
inline constexpr std::size_t kPutRecordBytesMax = kRecordHeadBytes + 2 + 25 + kIndexValueBytesMax;
constexpr std::size_t extent_record_bytes(std::size_t blocks) {
    return kRecordHeadBytes + 16 + 8 + 8 + 1 + 4 * blocks;
}
// The size of a kPut record that stores a reply of `reply_bytes`.
constexpr std::size_t reply_record_bytes(std::size_t reply_bytes) {
    return kRecordHeadBytes + 2 + kReplyKeyBytes + kReplyHeadBytes + reply_bytes;
}
inline constexpr std::size_t kForgetRecordBytes = kRecordHeadBytes + 2 + kReplyKeyBytes;
inline constexpr std::size_t kPunchRecordBytes = kRecordHeadBytes + 16 + 8 + 8;
inline constexpr std::size_t kRemoveRecordBytes = kRecordHeadBytes + 16;

// Parses records. A record that next() returns borrows from the payload.
class RecordReader {
public:
    explicit RecordReader(Bytes payload) : rest_(payload) {}

    // None at the end. kCorrupt: not a record; keys and values of kPut are not checked.
    Result<std::optional<Record>> next();
    // The bytes of the record that next() returned last.
    Bytes bytes() const { return last_; }

private:
    Bytes rest_;
    Bytes last_{};
};

}  // namespace fopd::store
