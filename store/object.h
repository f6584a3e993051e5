#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/index.h"

namespace fopd::store {

// Keys and values of a disk's index, as bytes; see docs/formats/index.md.

inline constexpr std::size_t kObjectNameBytesMax = 480;
// All versions of names are less, so that a next one always exists.
inline constexpr std::uint64_t kNameVersionEnd = 1ULL << 63;
inline constexpr std::size_t kPrincipalBytesMax = 64;
// Bytes of a reply's key: key kind (1), client id (15), request place (2).
inline constexpr std::size_t kReplyKeyBytes = 1 + 15 + 2;
// Bytes before the reply in its value: the request number without its lowest byte (7), the time of
// the reply (8).
inline constexpr std::size_t kReplyHeadBytes = 7 + 8;
inline constexpr std::size_t kReplyBytesMax = 256;

enum class KeyKind : std::uint8_t {
    kCopy = 'c',     // A copy of an object's bytes on a cartridge; see copy.h.
    kCleared = 'd',  // A cleared range, whose extents are still to be freed.
    kExtent = 'e',
    kPosition = 'm',  // The copy at a position of a cartridge.
    kNames = 'n',     // The newest entry of the log that changed a name.
    kObject = 'o',
    kRecall = 'q',
    kReply = 'r',   // A recorded reply.
    kTotal = 't',   // Totals of the copies on a cartridge.
    kUpload = 'u',  // An upload: an object that is being written and is not committed.
};

// The volume serial number of a cartridge, padded with spaces.
using VsnText = std::array<char, 6>;
inline std::string_view text_of(const VsnText& vsn) {
    return {vsn.data(), vsn.size()};
}

// Identifies the client of a request that is recorded.
struct ClientId {
    std::array<std::byte, 15> bytes{};

    friend auto operator<=>(const ClientId&, const ClientId&) = default;
};

// The last client that changed an object's bytes or size, and in which epoch of the log.
struct LastWriter {
    // The epoch of the last change. 0: an older program wrote the record, in an epoch before the
    // present one.
    std::uint32_t incarnation = 0;
    // The last log epoch in which a client other than `who` changed the object's bytes or size. 0:
    // no other client did.
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
    // The bytes are not on the disk; copies on cartridges have all of them.
    bool is_released = false;
    // How many blocks it had on the disk when it was released: they still count for its owner.
    std::uint64_t released_blocks = 0;
    // How many versions came after the last change of the bytes or the size. A change that leaves
    // it as it is counts as a change of the content.
    std::uint32_t attribute_changes = 0;
    LastWriter last_writer{};
    std::string_view owner{};  // Borrowed, as are group, name and collection.
    std::string_view group{};
    std::string_view name{};  // Empty: no name.
    std::uint64_t name_version = 0;
    // Objects of a collection are kept together on tape. Empty: those of its group are.
    std::string_view collection{};

    std::string_view kept_with() const { return collection.empty() ? group : collection; }
    // The version of the last change of the bytes or the size: identifies the content.
    std::uint64_t content_version() const { return version - attribute_changes; }
    // Called for a change of the bytes or the size; next_attributes() for every other change.
    void next_content() {
        ++version;
        attribute_changes = 0;
    }
    void next_attributes() {
        ++version;
        ++attribute_changes;
    }
};

// Whether committing an upload may replace the object that has the name.
enum class NameRule : std::uint8_t { kReplace, kNoReplace };

struct Upload {
    Object object{};  // The finished object; size_bytes is the announced size, or zero.
    NameRule rule = NameRule::kReplace;
    std::uint64_t write_count = 0;
    std::uint64_t written_bytes = 0;
};

// Identifies a request of a client that must not run twice. The lowest ten bits of its number are
// its request place; a client has at most one such request in flight in each place
// (fop::kRequestPlaces).
struct ReplyKey {
    ClientId client{};
    std::uint64_t request_number = 0;

    std::uint16_t place() const { return static_cast<std::uint16_t>(request_number % 1024); }
    friend bool operator==(const ReplyKey&, const ReplyKey&) = default;
};

// A recorded reply.
struct ReplyRecord {
    ReplyKey key{};
    // The age of the disk when the reply was recorded, see objects::HomeVolume::service_time().
    Duration made{};
    Bytes reply{};  // Borrowed.
};

struct ExtentKey {
    Fid fid{};
    std::uint64_t first = 0;
};
// A cleared range of an object, which may be removed already.
struct Cleared {
    Fid fid{};
    std::uint64_t first = 0;
    std::uint64_t end = 0;
};
// An encoded index key; the object contains its bytes.
class Key {
public:
    static Key object(Fid fid) { return {KeyKind::kObject, fid.high, fid.low}; }
    static Key upload(Fid fid) { return {KeyKind::kUpload, fid.high, fid.low}; }
    // Contains the end of the range, so that the key stays the same while the range is freed from
    // its front.
    static Key cleared(Fid fid, std::uint64_t end) {
        return {KeyKind::kCleared, fid.high, fid.low, end};
    }
    static Key extent(Fid fid, std::uint64_t first) {
        return {KeyKind::kExtent, fid.high, fid.low, first};
    }
    // Contains the request place, so that a reply replaces the earlier one in its place.
    static Key reply(const ReplyKey& key);
    // The single key of its kind.
    static Key names();
    static Key recall(Fid fid) { return {KeyKind::kRecall, fid.high, fid.low}; }
    static Key copy(Fid fid, std::uint64_t offset, const VsnText& vsn);
    // REQUIRES: the member has at most 48 bits.
    static Key position(const VsnText& vsn, std::uint32_t file, std::uint64_t member);
    static Key total(const VsnText& vsn);
    // The lowest and the highest possible key of a kind.
    static Key first_of(KeyKind kind);
    static Key last_of(KeyKind kind);

    Bytes bytes() const { return std::span(bytes_).first(size_); }
    operator Bytes() const { return bytes(); }  // NOLINT(google-explicit-constructor)

private:
    explicit Key(KeyKind kind);
    Key(KeyKind kind, std::uint64_t high, std::uint64_t low);
    Key(KeyKind kind, std::uint64_t high, std::uint64_t low, std::uint64_t number);

    void append(const VsnText& vsn);

    std::array<std::byte, 31> bytes_;
    std::uint8_t size_;
};

// kCorrupt, here and from read_object() on: the bytes are not a valid key or value. Text and bytes
// are borrowed from the argument.
Result<Fid> read_fid_key(KeyKind kind, Bytes key);  // The kind is kObject, kUpload or kRecall.
Result<ExtentKey> read_extent_key(Bytes key);
// The key contains only the request place, so request_number is set to the place (0 to 1023).
Result<ReplyKey> read_reply_key(Bytes key);

// An extent as it is stored in the index; its checksums are little endian, unaligned.
struct StoredExtent {
    Fid fid{};
    std::uint64_t first = 0;
    std::uint64_t block = 0;
    std::uint32_t count = 0;
    Bytes checksums{};  // Borrowed.

    std::uint64_t end() const { return first + count; }
    // The checksums without those of the first `skip` blocks.
    Bytes checksums_from(std::uint32_t skip) const {
        return checksums.subspan(skip * sizeof(std::uint32_t));
    }
    // REQUIRES: `into` is no longer than the number of checksums from `skip` on.
    void copy_checksums(std::uint32_t skip, std::span<std::uint32_t> into) const;
};

Result<Object> read_object(Bytes value);
Result<Upload> read_upload(Bytes value);
Result<StoredExtent> read_extent(Bytes key, Bytes value);
// Returns the range with first = 0; read_cleared() also reads `first` from the value.
Result<Cleared> read_cleared_key(Bytes key);
Result<Cleared> read_cleared(Bytes key, Bytes value);
Result<std::uint64_t> read_newest_name(Bytes value);
Result<ReplyRecord> read_reply(Bytes key, Bytes value);

// The buffer for a value that is being written.
class ValueBuffer {
public:
    Bytes bytes() const { return std::span(bytes_).first(size_); }
    // Appends so many bytes and returns them. REQUIRES: the value stays within kIndexValueBytesMax.
    std::span<std::byte> grow(std::size_t size_bytes);
    void clear() { size_ = 0; }

private:
    std::array<std::byte, kIndexValueBytesMax> bytes_;
    std::size_t size_ = 0;
};

// REQUIRES: names, replies and extents are no longer than allowed, and numbers within their bounds.
// The result is valid until the next write into the same buffer.
Bytes write_object(ValueBuffer& into, const Object& object);
Bytes write_upload(ValueBuffer& into, const Upload& upload);
// The extent's checksums are `checksums` followed by `more`, as they are stored in the index.
Bytes write_extent(ValueBuffer& into, std::uint64_t block, Bytes checksums, Bytes more = {});
Bytes write_cleared(ValueBuffer& into, std::uint64_t first);
Bytes write_reply(ValueBuffer& into, const ReplyRecord& record);
Bytes write_newest_name(ValueBuffer& into, std::uint64_t seq);

}  // namespace fopd::store
