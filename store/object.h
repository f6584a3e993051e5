#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/index.h"

namespace fopd::store {

// What the index of a disk holds, as bytes; docs/formats/index.md has the layouts.

inline constexpr std::size_t kObjectNameBytesMax = 480;
// Versions of names are below it, so that there always is a next one.
inline constexpr std::uint64_t kNameVersionEnd = 1ULL << 63;
inline constexpr std::size_t kPrincipalBytesMax = 64;
// The kind, whose it is, its place.
inline constexpr std::size_t kReplyKeyBytes = 1 + 15 + 2;
// The number of its request without its lowest byte, and when it was made.
inline constexpr std::size_t kReplyHeadBytes = 7 + 8;
inline constexpr std::size_t kReplyBytesMax = 256;

enum class KeyKind : std::uint8_t {
    kCleared = 'd',  // Blocks whose extents count no more, and are going.
    kExtent = 'e',
    kNames = 'n',  // The newest record that changed a name.
    kObject = 'o',
    kReply = 'r',   // What was answered to a fop that must not run twice.
    kUpload = 'u',  // An object that is not one yet.
};

// Identifies the client of a request that is recorded.
struct ClientId {
    std::array<std::byte, 15> bytes{};

    friend auto operator<=>(const ClientId&, const ClientId&) = default;
};

// The last client that changed an object's bytes or size, and in which epoch of the log.
struct LastWriter {
    // Of the last change. 0: an older program wrote the record, in an epoch before the present one.
    std::uint32_t incarnation = 0;
    // The last epoch in which another client changed them. 0: no other client did.
    std::uint32_t others_in = 0;
    // The client of the last change. Zeros: unknown.
    ClientId who{};

    friend bool operator==(const LastWriter&, const LastWriter&) = default;
};

struct Object {
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    WallTime created{};
    WallTime changed{};
    std::uint32_t pool = 0;
    std::uint16_t mode = 0;  // Nine permission bits.
    LastWriter last_writer{};
    std::string_view owner{};  // Borrowed, as the other two.
    std::string_view group{};
    std::string_view name{};  // Empty: it has none.
    std::uint64_t name_version = 0;
};

enum class NameRule : std::uint8_t { kReplace, kNoReplace };

struct Upload {
    Object object{};  // As it will be; size_bytes is what was said to come, or zero.
    NameRule rule = NameRule::kReplace;
    std::uint64_t write_count = 0;
    std::uint64_t written_bytes = 0;
};

// A request of a client. The lowest ten bits of its number name a place of the client, which has at
// most one request in each place at a time (fop::kRequestPlaces).
struct ReplyKey {
    ClientId client{};
    std::uint64_t request_number = 0;

    std::uint16_t place() const { return static_cast<std::uint16_t>(request_number % 1024); }
    friend bool operator==(const ReplyKey&, const ReplyKey&) = default;
};

// A reply, to be given again when the request comes again.
struct ReplyRecord {
    ReplyKey key{};
    // How long the disk had been in service (objects::HomeVolume::service_time()).
    Duration made{};
    Bytes reply{};  // Borrowed.
};

struct ExtentKey {
    Fid fid{};
    std::uint64_t first = 0;
};
// Blocks of an object, or of one that is gone.
struct Cleared {
    Fid fid{};
    std::uint64_t first = 0;
    std::uint64_t end = 0;
};
// A key, where it lies.
class Key {
public:
    static Key object(Fid fid) { return {KeyKind::kObject, fid.high, fid.low}; }
    static Key upload(Fid fid) { return {KeyKind::kUpload, fid.high, fid.low}; }
    // By their end, so that it stays the same while they go from the front.
    static Key cleared(Fid fid, std::uint64_t end) {
        return {KeyKind::kCleared, fid.high, fid.low, end};
    }
    static Key extent(Fid fid, std::uint64_t first) {
        return {KeyKind::kExtent, fid.high, fid.low, first};
    }
    // By its place: one reply takes that of the one before it.
    static Key reply(const ReplyKey& key);
    // The only one of its kind.
    static Key names();
    // None of the kind is before, or after.
    static Key first_of(KeyKind kind);
    static Key last_of(KeyKind kind);

    Bytes bytes() const { return std::span(bytes_).first(size_); }
    operator Bytes() const { return bytes(); }  // NOLINT(google-explicit-constructor)

private:
    explicit Key(KeyKind kind);
    Key(KeyKind kind, std::uint64_t high, std::uint64_t low);
    Key(KeyKind kind, std::uint64_t high, std::uint64_t low, std::uint64_t number);

    std::array<std::byte, 25> bytes_;
    std::uint8_t size_;
};

// kCorrupt when the bytes are no such key, as read_... are for values. Text and bytes are borrowed
// from what was read.
Result<Fid> read_fid_key(KeyKind kind, Bytes key);  // Of an object or an upload.
Result<ExtentKey> read_extent_key(Bytes key);
// Of its request's number only the place.
Result<ReplyKey> read_reply_key(Bytes key);

// An extent as it lies in the index: its checksums are little endian, at any address.
struct StoredExtent {
    Fid fid{};
    std::uint64_t first = 0;
    std::uint64_t block = 0;
    std::uint32_t count = 0;
    Bytes checksums{};  // Borrowed.

    std::uint64_t end() const { return first + count; }
    // Those of all blocks but the first `skip`.
    Bytes checksums_from(std::uint32_t skip) const {
        return checksums.subspan(skip * sizeof(std::uint32_t));
    }
    // Requires: `into` is no longer than what there is from `skip` on.
    void copy_checksums(std::uint32_t skip, std::span<std::uint32_t> into) const;
};

Result<Object> read_object(Bytes value);
Result<Upload> read_upload(Bytes value);
Result<StoredExtent> read_extent(Bytes key, Bytes value);
// Its key alone does not say where it begins: at 0, then.
Result<Cleared> read_cleared_key(Bytes key);
Result<Cleared> read_cleared(Bytes key, Bytes value);
Result<std::uint64_t> read_newest_name(Bytes value);
Result<ReplyRecord> read_reply(Bytes key, Bytes value);

// A value in the making.
class ValueBuffer {
public:
    Bytes bytes() const { return std::span(bytes_).first(size_); }
    // Its end, longer by so much. Requires: that is no more than a value may have.
    std::span<std::byte> grow(std::size_t size_bytes);
    void clear() { size_ = 0; }

private:
    std::array<std::byte, kIndexValueBytesMax> bytes_;
    std::size_t size_ = 0;
};

// Requires: names, replies and extents are no longer than allowed, and numbers within their bounds.
// What is written is good until the next into the same buffer.
Bytes write_object(ValueBuffer& into, const Object& object);
Bytes write_upload(ValueBuffer& into, const Upload& upload);
// An extent's checksums are the one and then the other, as they lie in the index.
Bytes write_extent(ValueBuffer& into, std::uint64_t block, Bytes checksums, Bytes more = {});
Bytes write_cleared(ValueBuffer& into, std::uint64_t first);
Bytes write_reply(ValueBuffer& into, const ReplyRecord& record);
Bytes write_newest_name(ValueBuffer& into, std::uint64_t seq);

}  // namespace fopd::store
