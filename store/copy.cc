#include "store/copy.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "store/corrupt.h"
#include "store/extent.h"

namespace fopd::store {

namespace {

constexpr std::size_t kVsnBytes = std::tuple_size_v<VsnText>;
constexpr std::size_t kFidAt = 1;
constexpr std::size_t kOffsetAt = 17;
constexpr std::size_t kOffsetInPositionAt = 16;
constexpr std::size_t kClientAt = 28;
constexpr std::size_t kRequesterBytesAt = 43;
constexpr std::size_t kSpareAt = 44;

static_assert(kCopyKeyBytes == kOffsetAt + 8 + kVsnBytes);
static_assert(kRecallHeadBytes + kPrincipalBytesMax <= kIndexValueBytesMax);

bool is_key(Bytes key, KeyKind kind, std::size_t size_bytes) {
    return key.size() == size_bytes && key.front() == static_cast<std::byte>(kind);
}

VsnText read_vsn(Bytes bytes) {
    VsnText vsn;
    std::ranges::copy(as_text(bytes.first(kVsnBytes)), vsn.begin());
    return vsn;
}

// Printable ASCII: the characters that the label of a tape may contain.
bool is_vsn(const VsnText& vsn) {
    return vsn.front() != ' ' &&
           std::ranges::all_of(vsn, [](char c) { return c >= ' ' && c <= '~'; });
}

// Six bytes, lowest first.
std::uint64_t get_six(Bytes bytes, std::size_t at) {
    return get_little<std::uint32_t>(bytes, at) |
           std::uint64_t{get_little<std::uint16_t>(bytes, at + 4)} << 32;
}

void put_six(std::span<std::byte> bytes, std::size_t at, std::uint64_t value) {
    put_little(bytes, at, static_cast<std::uint32_t>(value));
    put_little(bytes, at + 4, static_cast<std::uint16_t>(value >> 32));
}

bool is_copy_range(std::uint64_t offset, std::uint64_t length) {
    return offset <= kObjectBytesMax && length <= kObjectBytesMax - offset;
}

}  // namespace

Result<CopyKey> read_copy_key(Bytes key) {
    if (!is_key(key, KeyKind::kCopy, kCopyKeyBytes)) return corrupt("key of a copy in the index");
    const CopyKey read{.fid = {.high = load_big<std::uint64_t>(key.data() + kFidAt),
                               .low = load_big<std::uint64_t>(key.data() + kFidAt + 8)},
                       .offset = load_big<std::uint64_t>(key.data() + kOffsetAt),
                       .vsn = read_vsn(key.subspan(kOffsetAt + 8))};
    if (!is_vsn(read.vsn) || read.offset > kObjectBytesMax) {
        return corrupt("key of a copy in the index");
    }
    return read;
}

Result<Copy> read_copy(Bytes key, Bytes value) {
    const auto whose = read_copy_key(key);
    if (!whose) return std::unexpected(whose.error());
    if (value.size() != kCopyValueBytes) return corrupt("length of a copy in the index");
    const Copy copy{
        .fid = whose->fid,
        .offset = whose->offset,
        .length = get_six(value, 0),
        .version = get_six(value, 18),
        .cartridge = {.vsn = whose->vsn, .generation = get_little<std::uint16_t>(value, 36)},
        .position = {.file = get_little<std::uint32_t>(value, 28), .member = get_six(value, 6)},
        .block = get_six(value, 12),
        .checksum = get_little<std::uint32_t>(value, 24),
        .written_s = get_little<std::uint32_t>(value, 32)};
    if (!is_copy_range(copy.offset, copy.length) || copy.position.file == 0) {
        return corrupt("copy in the index");
    }
    return copy;
}

Result<PositionOwner> read_position(Bytes key, Bytes value) {
    if (!is_key(key, KeyKind::kPosition, kPositionKeyBytes)) {
        return corrupt("key of a position in the index");
    }
    const bool has_offset = value.size() == kPositionValueBytesMax;
    if (!has_offset && value.size() != kOffsetInPositionAt) {
        return corrupt("length of a position in the index");
    }
    const PositionOwner owner{
        .key = {.fid = {.high = get_little<std::uint64_t>(value, 0),
                        .low = get_little<std::uint64_t>(value, 8)},
                .offset = has_offset ? get_little<std::uint64_t>(value, kOffsetInPositionAt) : 0,
                .vsn = read_vsn(key.subspan(1))},
        .position = {
            .file = load_big<std::uint32_t>(key.data() + 1 + kVsnBytes),
            .member = std::uint64_t{load_big<std::uint16_t>(key.data() + 5 + kVsnBytes)} << 32 |
                      load_big<std::uint32_t>(key.data() + 7 + kVsnBytes)}};
    if (!is_vsn(owner.key.vsn) || owner.position.file == 0 || owner.key.offset > kObjectBytesMax ||
        has_offset != (owner.key.offset > 0)) {
        return corrupt("position in the index");
    }
    return owner;
}

Result<CartridgeTotal> read_total(Bytes key, Bytes value) {
    if (!is_key(key, KeyKind::kTotal, kTotalKeyBytes)) {
        return corrupt("key of a cartridge in the index");
    }
    if (value.size() != kTotalValueBytes) return corrupt("length of a cartridge in the index");
    const CartridgeTotal total{.cartridge = {.vsn = read_vsn(key.subspan(1)),
                                             .generation = get_little<std::uint32_t>(value, 16)},
                               .copies = get_little<std::uint64_t>(value, 0),
                               .bytes = get_little<std::uint64_t>(value, 8)};
    if (!is_vsn(total.cartridge.vsn)) return corrupt("cartridge in the index");
    return total;
}

Result<Recall> read_recall(Bytes value) {
    if (value.size() < kRecallHeadBytes) return corrupt("length of a recall in the index");
    const auto requester_bytes = std::to_integer<std::size_t>(value[kRequesterBytesAt]);
    if (requester_bytes > kPrincipalBytesMax ||
        value.size() != kRecallHeadBytes + requester_bytes ||
        get_little<std::uint32_t>(value, kSpareAt) != 0) {
        return corrupt("recall in the index");
    }
    Recall recall{.ticket = get_little<std::uint64_t>(value, 0),
                  .priority = static_cast<std::int32_t>(get_little<std::uint32_t>(value, 24)),
                  .asked = {static_cast<std::int64_t>(get_little<std::uint64_t>(value, 8))},
                  .pinned_until = {static_cast<std::int64_t>(get_little<std::uint64_t>(value, 16))},
                  .requester = std::string(as_text(value.subspan(kRecallHeadBytes)))};
    std::ranges::copy(value.subspan(kClientAt, recall.client.bytes.size()),
                      recall.client.bytes.begin());
    return recall;
}

Bytes write_copy(ValueBuffer& into, const Copy& copy) {
    ENSURE(is_copy_valid(copy));
    into.clear();
    const auto value = into.grow(kCopyValueBytes);
    put_six(value, 0, copy.length);
    put_six(value, 6, copy.position.member);
    put_six(value, 12, copy.block);
    put_six(value, 18, copy.version);
    put_little(value, 24, copy.checksum);
    put_little(value, 28, copy.position.file);
    put_little(value, 32, copy.written_s);
    put_little(value, 36, static_cast<std::uint16_t>(copy.cartridge.generation));
    return into.bytes();
}

Bytes write_position(ValueBuffer& into, const CopyKey& copy) {
    into.clear();
    const auto value = into.grow(copy.offset > 0 ? kPositionValueBytesMax : kOffsetInPositionAt);
    put_little(value, 0, copy.fid.high);
    put_little(value, 8, copy.fid.low);
    if (copy.offset > 0) put_little(value, kOffsetInPositionAt, copy.offset);
    return into.bytes();
}

Bytes write_total(ValueBuffer& into, const CartridgeTotal& total) {
    ENSURE(is_vsn(total.cartridge.vsn));
    into.clear();
    const auto value = into.grow(kTotalValueBytes);
    put_little(value, 0, total.copies);
    put_little(value, 8, total.bytes);
    put_little(value, 16, total.cartridge.generation);
    return into.bytes();
}

Bytes write_recall(ValueBuffer& into, const Recall& recall) {
    ENSURE(recall.requester.size() <= kPrincipalBytesMax);
    into.clear();
    const auto value = into.grow(kRecallHeadBytes + recall.requester.size());
    put_little(value, 0, recall.ticket);
    put_little(value, 8, static_cast<std::uint64_t>(recall.asked.unix_ns));
    put_little(value, 16, static_cast<std::uint64_t>(recall.pinned_until.unix_ns));
    put_little(value, 24, static_cast<std::uint32_t>(recall.priority));
    std::ranges::copy(recall.client.bytes, value.begin() + kClientAt);
    value[kRequesterBytesAt] = static_cast<std::byte>(recall.requester.size());
    put_little(value, kSpareAt, std::uint32_t{0});
    std::ranges::copy(std::as_bytes(std::span(recall.requester)), value.begin() + kRecallHeadBytes);
    return into.bytes();
}

bool is_of_content(const Copy& copy, const Object& object) {
    return copy.version == object.content_version();
}

bool is_copy_valid(const Copy& copy) {
    return is_copy_range(copy.offset, copy.length) && copy.length < kTapeNumberEnd &&
           copy.position.file > 0 && copy.position.member < kTapeNumberEnd &&
           copy.block < kTapeNumberEnd && copy.version < kTapeNumberEnd &&
           copy.cartridge.generation <= kGenerationMax && is_vsn(copy.cartridge.vsn);
}

}  // namespace fopd::store
