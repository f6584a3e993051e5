#include "store/object.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

constexpr std::size_t kFidKeyBytes = 17;
constexpr std::size_t kNumberKeyBytes = 25;

// Older objects have a shorter head, without the last writer. Objects whose attributes changed
// after their content have a longer one; those that are released or have a collection have the
// longest, and the collection behind the name.
constexpr std::byte kOldObjectLayout{1};
constexpr std::byte kObjectLayout{2};
constexpr std::byte kLongObjectLayout{3};
constexpr std::byte kFullObjectLayout{4};
constexpr std::byte kUploadLayout{1};
constexpr std::size_t kOldObjectHeadBytes = 56;
constexpr std::size_t kCollectionBytesAt = 75;
constexpr std::size_t kObjectHeadBytes = 76;
constexpr std::size_t kLongObjectHeadBytes = 80;
constexpr std::size_t kFullObjectHeadBytes = 88;
constexpr std::byte kReleasedFlag{1};
constexpr std::size_t kLastWriterAt = 60;
constexpr std::size_t kUploadHeadBytes = 24;
constexpr std::size_t kExtentHeadBytes = 8;
constexpr std::size_t kReplyMadeAt = 7;
constexpr std::uint16_t kModeMax = 0777;
// More blocks than any disk has: its size in bytes fits into 64 bits.
constexpr std::uint64_t kDiskBlocksMax = std::numeric_limits<std::uint64_t>::max() / 4096;

static_assert(kUploadHeadBytes + kFullObjectHeadBytes + 3 * kPrincipalBytesMax +
                  kObjectNameBytesMax <=
              kIndexValueBytesMax);
static_assert(kExtentHeadBytes + kExtentBlocksMax * sizeof(std::uint32_t) <= kIndexValueBytesMax);
static_assert(kReplyHeadBytes + kReplyBytesMax <= kIndexValueBytesMax);

bool is_kind(Bytes key, KeyKind kind, std::size_t size_bytes) {
    return key.size() == size_bytes && key.front() == static_cast<std::byte>(kind);
}

// The object that a key is about. It stands behind the kind, which all keys begin with.
Fid fid_in(Bytes key) {
    return {.high = load_big<std::uint64_t>(key.data() + 1),
            .low = load_big<std::uint64_t>(key.data() + 9)};
}

std::byte* put_text(std::byte* at, std::string_view text) {
    return std::ranges::copy(std::as_bytes(std::span(text)), at).out;
}

std::byte layout_of(const Object& object) {
    if (object.is_released || !object.collection.empty()) return kFullObjectLayout;
    return object.attribute_changes > 0 ? kLongObjectLayout : kObjectLayout;
}

// 0: there is no such layout.
std::size_t head_bytes_of(std::byte layout) {
    switch (layout) {
        case kOldObjectLayout: return kOldObjectHeadBytes;
        case kObjectLayout: return kObjectHeadBytes;
        case kLongObjectLayout: return kLongObjectHeadBytes;
        case kFullObjectLayout: return kFullObjectHeadBytes;
        default: return 0;
    }
}

void append_object(ValueBuffer& into, const Object& object) {
    ENSURE(object.owner.size() <= kPrincipalBytesMax);
    ENSURE(object.group.size() <= kPrincipalBytesMax);
    ENSURE(object.collection.size() <= kPrincipalBytesMax);
    ENSURE(object.name.size() <= kObjectNameBytesMax);
    ENSURE(!object.name.contains('\0'));
    ENSURE(object.name_version < kNameVersionEnd);
    ENSURE(object.mode <= kModeMax);
    ENSURE(object.size_bytes <= kObjectBytesMax);
    ENSURE(object.attribute_changes <= object.version);
    ENSURE(!object.is_released || object.size_bytes > 0);
    ENSURE(object.is_released || object.released_blocks == 0);
    ENSURE(object.released_blocks <= kObjectBlocksMax);
    const std::byte layout = layout_of(object);
    const std::size_t head_bytes = head_bytes_of(layout);
    const auto value = into.grow(head_bytes + object.owner.size() + object.group.size() +
                                 object.name.size() + object.collection.size());
    value[0] = layout;
    value[1] = static_cast<std::byte>(object.owner.size());
    value[2] = static_cast<std::byte>(object.group.size());
    value[3] = object.is_released ? kReleasedFlag : std::byte{0};
    put_little(value, 4, static_cast<std::uint16_t>(object.name.size()));
    put_little(value, 6, object.mode);
    put_little(value, 8, object.last_writer.incarnation);
    put_little(value, 12, object.pool);
    put_little(value, 16, object.size_bytes);
    put_little(value, 24, object.version);
    put_little(value, 32, static_cast<std::uint64_t>(object.created.unix_ns));
    put_little(value, 40, static_cast<std::uint64_t>(object.changed.unix_ns));
    put_little(value, 48, object.name_version);
    put_little(value, kOldObjectHeadBytes, object.last_writer.others_in);
    std::ranges::copy(object.last_writer.who.bytes, value.begin() + kLastWriterAt);
    value[kCollectionBytesAt] = static_cast<std::byte>(object.collection.size());
    if (layout >= kLongObjectLayout) put_little(value, kObjectHeadBytes, object.attribute_changes);
    if (layout == kFullObjectLayout)
        put_little(value, kLongObjectHeadBytes, object.released_blocks);
    std::byte* text = value.subspan(head_bytes).data();
    text = put_text(text, object.owner);
    text = put_text(text, object.group);
    text = put_text(text, object.name);
    put_text(text, object.collection);
}

}  // namespace

Key::Key(KeyKind kind) : bytes_{static_cast<std::byte>(kind)}, size_(1) {}

Key::Key(KeyKind kind, std::uint64_t high, std::uint64_t low)
    : bytes_{static_cast<std::byte>(kind)}, size_(kFidKeyBytes) {
    store_big(bytes_.data() + 1, high);
    store_big(bytes_.data() + 9, low);
}

Key::Key(KeyKind kind, std::uint64_t high, std::uint64_t low, std::uint64_t number)
    : Key(kind, high, low) {
    store_big(bytes_.data() + kFidKeyBytes, number);
    size_ = kNumberKeyBytes;
}

Key Key::reply(const ReplyKey& key) {
    Key made(KeyKind::kReply);
    std::ranges::copy(key.client.bytes, made.bytes_.begin() + 1);
    made.bytes_[kReplyKeyBytes - 2] = static_cast<std::byte>(key.place() >> 8);
    made.bytes_[kReplyKeyBytes - 1] = static_cast<std::byte>(key.place());
    made.size_ = kReplyKeyBytes;
    return made;
}

Key Key::names() {
    return Key(KeyKind::kNames);
}

Key Key::copy(Fid fid, std::uint64_t offset, const VsnText& vsn) {
    Key made(KeyKind::kCopy, fid.high, fid.low, offset);
    made.append(vsn);
    return made;
}

Key Key::position(const VsnText& vsn, std::uint32_t file, std::uint64_t member) {
    Key made(KeyKind::kPosition);
    made.append(vsn);
    store_big(made.bytes_.data() + made.size_, file);
    std::byte* const at = made.bytes_.data() + made.size_ + sizeof file;
    store_big(at, static_cast<std::uint16_t>(member >> 32));
    store_big(at + 2, static_cast<std::uint32_t>(member));
    made.size_ += sizeof file + 6;
    return made;
}

Key Key::total(const VsnText& vsn) {
    Key made(KeyKind::kTotal);
    made.append(vsn);
    return made;
}

void Key::append(const VsnText& vsn) {
    std::ranges::copy(std::as_bytes(std::span(vsn)), bytes_.begin() + size_);
    size_ += static_cast<std::uint8_t>(vsn.size());
}

Key Key::first_of(KeyKind kind) {
    return {kind, 0, 0};
}

Key Key::last_of(KeyKind kind) {
    constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
    Key last(kind, kMax, kMax, kMax);
    std::ranges::fill(std::span(last.bytes_).subspan(last.size_), std::byte{0xff});
    last.size_ = static_cast<std::uint8_t>(last.bytes_.size());
    return last;
}

Result<Fid> read_fid_key(KeyKind kind, Bytes key) {
    if (!is_kind(key, kind, kFidKeyBytes)) return corrupt("key of an object in the index");
    return fid_in(key);
}

Result<ExtentKey> read_extent_key(Bytes key) {
    if (!is_kind(key, KeyKind::kExtent, kNumberKeyBytes)) {
        return corrupt("key of an extent in the index");
    }
    return ExtentKey{.fid = fid_in(key),
                     .first = load_big<std::uint64_t>(key.data() + kFidKeyBytes)};
}

Result<ReplyKey> read_reply_key(Bytes key) {
    if (!is_kind(key, KeyKind::kReply, kReplyKeyBytes)) {
        return corrupt("key of a reply in the index");
    }
    ReplyKey read{.client = {},
                  .request_number = std::to_integer<std::uint64_t>(key[kReplyKeyBytes - 2]) << 8 |
                                    std::to_integer<std::uint64_t>(key.back())};
    if (read.place() != read.request_number) return corrupt("place of a reply in the index");
    std::ranges::copy(key.subspan(1, read.client.bytes.size()), read.client.bytes.begin());
    return read;
}

void StoredExtent::copy_checksums(std::uint32_t skip, std::span<std::uint32_t> into) const {
    static_assert(std::endian::native == std::endian::little, "swap the bytes here");
    const auto from = checksums_from(skip);
    ENSURE(into.size_bytes() <= from.size());
    if (!into.empty()) std::memcpy(into.data(), from.data(), into.size_bytes());
}

Result<Object> read_object(Bytes value) {
    const std::byte layout = value.empty() ? std::byte{0} : value[0];
    const std::size_t head_bytes = head_bytes_of(layout);
    if (head_bytes == 0 || value.size() < head_bytes) {
        return corrupt("layout of an object in the index");
    }
    const auto owner_bytes = static_cast<std::size_t>(value[1]);
    const auto group_bytes = static_cast<std::size_t>(value[2]);
    const auto name_bytes = std::size_t{get_little<std::uint16_t>(value, 4)};
    const std::size_t collection_bytes =
        layout == kFullObjectLayout ? static_cast<std::size_t>(value[kCollectionBytesAt]) : 0;
    if (owner_bytes > kPrincipalBytesMax || group_bytes > kPrincipalBytesMax ||
        name_bytes > kObjectNameBytesMax || collection_bytes > kPrincipalBytesMax ||
        value.size() != head_bytes + owner_bytes + group_bytes + name_bytes + collection_bytes) {
        return corrupt("length of an object in the index");
    }
    const auto text = value.subspan(head_bytes);
    Object object{
        .size_bytes = get_little<std::uint64_t>(value, 16),
        .version = get_little<std::uint64_t>(value, 24),
        .created = {static_cast<std::int64_t>(get_little<std::uint64_t>(value, 32))},
        .changed = {static_cast<std::int64_t>(get_little<std::uint64_t>(value, 40))},
        .pool = get_little<std::uint32_t>(value, 12),
        .mode = get_little<std::uint16_t>(value, 6),
        .last_writer = {.incarnation = get_little<std::uint32_t>(value, 8)},
        .owner = as_text(text.first(owner_bytes)),
        .group = as_text(text.subspan(owner_bytes, group_bytes)),
        .name = as_text(text.subspan(owner_bytes + group_bytes, name_bytes)),
        .name_version = get_little<std::uint64_t>(value, 48),
        .collection = as_text(text.last(collection_bytes)),
    };
    const std::byte flags = value[3];
    const bool may_be_released = layout >= kLongObjectLayout;
    if ((flags != std::byte{0} && (!may_be_released || flags != kReleasedFlag)) ||
        object.mode > kModeMax || object.size_bytes > kObjectBytesMax ||
        object.name.contains('\0') || object.name_version >= kNameVersionEnd) {
        return corrupt("object in the index");
    }
    if (layout == kOldObjectLayout) return object;
    LastWriter& last = object.last_writer;
    last.others_in = get_little<std::uint32_t>(value, kOldObjectHeadBytes);
    std::ranges::copy(value.subspan(kLastWriterAt, last.who.bytes.size()), last.who.bytes.begin());
    const bool has_rest = layout != kFullObjectLayout && value[kCollectionBytesAt] != std::byte{0};
    if (has_rest || last.others_in > last.incarnation) {
        return corrupt("last writer of an object in the index");
    }
    if (layout == kObjectLayout) return object;
    object.is_released = flags == kReleasedFlag;
    if (layout == kFullObjectLayout) {
        object.released_blocks = get_little<std::uint64_t>(value, kLongObjectHeadBytes);
    }
    object.attribute_changes = get_little<std::uint32_t>(value, kObjectHeadBytes);
    if (object.attribute_changes > object.version ||
        (layout == kLongObjectLayout && !object.is_released && object.attribute_changes == 0) ||
        (layout == kFullObjectLayout && !object.is_released && object.collection.empty()) ||
        (object.is_released && object.size_bytes == 0) ||
        (!object.is_released && object.released_blocks > 0) ||
        object.released_blocks > kObjectBlocksMax) {
        return corrupt("content of an object in the index");
    }
    return object;
}

Result<Upload> read_upload(Bytes value) {
    if (value.size() < kUploadHeadBytes || value[0] != kUploadLayout) {
        return corrupt("layout of an upload in the index");
    }
    const auto rule = static_cast<std::uint8_t>(value[1]);
    if (rule > static_cast<std::uint8_t>(NameRule::kNoReplace) ||
        get_little<std::uint16_t>(value, 2) != 0 || get_little<std::uint32_t>(value, 4) != 0) {
        return corrupt("upload in the index");
    }
    const auto object = read_object(value.subspan(kUploadHeadBytes));
    if (!object) return std::unexpected(object.error());
    if (object->is_released) return corrupt("upload in the index");
    return Upload{.object = *object,
                  .rule = static_cast<NameRule>(rule),
                  .write_count = get_little<std::uint64_t>(value, 8),
                  .written_bytes = get_little<std::uint64_t>(value, 16)};
}

Result<StoredExtent> read_extent(Bytes key, Bytes value) {
    const auto where = read_extent_key(key);
    if (!where) return std::unexpected(where.error());
    if (value.size() <= kExtentHeadBytes || value.size() % sizeof(std::uint32_t) != 0) {
        return corrupt("length of an extent in the index");
    }
    const auto checksums = value.subspan(kExtentHeadBytes);
    const StoredExtent extent{
        .fid = where->fid,
        .first = where->first,
        .block = get_little<std::uint64_t>(value, 0),
        .count = static_cast<std::uint32_t>(checksums.size() / sizeof(std::uint32_t)),
        .checksums = checksums};
    // Compared in this order, so that no sum overflows.
    if (extent.count > kExtentBlocksMax || extent.first >= kObjectBlocksMax ||
        extent.end() > kObjectBlocksMax || extent.block >= kDiskBlocksMax ||
        extent.block + extent.count > kDiskBlocksMax) {
        return corrupt("extent in the index");
    }
    return extent;
}

Result<Cleared> read_cleared_key(Bytes key) {
    if (!is_kind(key, KeyKind::kCleared, kNumberKeyBytes)) {
        return corrupt("key of a cleared range in the index");
    }
    return Cleared{.fid = fid_in(key), .end = load_big<std::uint64_t>(key.data() + kFidKeyBytes)};
}

Result<Cleared> read_cleared(Bytes key, Bytes value) {
    auto cleared = read_cleared_key(key);
    if (!cleared) return cleared;
    if (value.size() != sizeof(std::uint64_t)) return corrupt("length of a cleared range");
    cleared->first = get_little<std::uint64_t>(value, 0);
    if (cleared->first >= cleared->end || cleared->end > kObjectBlocksMax) {
        return corrupt("cleared range in the index");
    }
    return cleared;
}

Result<std::uint64_t> read_newest_name(Bytes value) {
    if (value.size() != sizeof(std::uint64_t)) return corrupt("newest name in the index");
    return get_little<std::uint64_t>(value, 0);
}

Result<ReplyRecord> read_reply(Bytes key, Bytes value) {
    auto whose = read_reply_key(key);
    if (!whose) return std::unexpected(whose.error());
    if (value.size() < kReplyHeadBytes || value.size() > kReplyHeadBytes + kReplyBytesMax) {
        return corrupt("length of a reply in the index");
    }
    // Reads seven bytes and one of the next field, which is shifted out.
    const ReplyKey known = *whose;
    whose->request_number =
        get_little<std::uint64_t>(value, 0) << 8 | (known.request_number & 0xff);
    if (whose->place() != known.request_number) return corrupt("place of a reply in the index");
    return ReplyRecord{
        .key = *whose,
        .made = Duration(static_cast<std::int64_t>(get_little<std::uint64_t>(value, kReplyMadeAt))),
        .reply = value.subspan(kReplyHeadBytes),
    };
}

std::span<std::byte> ValueBuffer::grow(std::size_t size_bytes) {
    ENSURE(size_bytes <= bytes_.size() - size_);
    const auto end = std::span(bytes_).subspan(size_, size_bytes);
    size_ += size_bytes;
    return end;
}

Bytes write_object(ValueBuffer& into, const Object& object) {
    into.clear();
    append_object(into, object);
    return into.bytes();
}

Bytes write_upload(ValueBuffer& into, const Upload& upload) {
    into.clear();
    const auto head = into.grow(kUploadHeadBytes);
    head[0] = kUploadLayout;
    head[1] = static_cast<std::byte>(upload.rule);
    put_little(head, 2, std::uint16_t{0});
    put_little(head, 4, std::uint32_t{0});
    put_little(head, 8, upload.write_count);
    put_little(head, 16, upload.written_bytes);
    append_object(into, upload.object);
    return into.bytes();
}

Bytes write_extent(ValueBuffer& into, std::uint64_t block, Bytes checksums, Bytes more) {
    const auto size_bytes = checksums.size() + more.size();
    ENSURE(size_bytes > 0);
    ENSURE(size_bytes % sizeof(std::uint32_t) == 0);
    ENSURE(size_bytes <= kExtentBlocksMax * sizeof(std::uint32_t));
    ENSURE(block < kDiskBlocksMax);
    into.clear();
    const auto value = into.grow(kExtentHeadBytes + size_bytes);
    put_little(value, 0, block);
    const auto end = std::ranges::copy(checksums, value.begin() + kExtentHeadBytes).out;
    std::ranges::copy(more, end);
    return into.bytes();
}

Bytes write_reply(ValueBuffer& into, const ReplyRecord& record) {
    ENSURE(record.reply.size() <= kReplyBytesMax);
    into.clear();
    const auto value = into.grow(kReplyHeadBytes + record.reply.size());
    put_little(value, 0, record.key.request_number >> 8);
    put_little(value, kReplyMadeAt, static_cast<std::uint64_t>(record.made.count()));
    std::ranges::copy(record.reply, value.begin() + kReplyHeadBytes);
    return into.bytes();
}

Bytes write_cleared(ValueBuffer& into, std::uint64_t first) {
    into.clear();
    put_little(into.grow(sizeof first), 0, first);
    return into.bytes();
}

Bytes write_newest_name(ValueBuffer& into, std::uint64_t seq) {
    into.clear();
    put_little(into.grow(sizeof seq), 0, seq);
    return into.bytes();
}

}  // namespace fopd::store
