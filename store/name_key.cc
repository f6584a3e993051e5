#include "store/name_key.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

constexpr std::size_t kNameAt = 5;  // After the kind and the pool.
constexpr std::size_t kTailBytes = 1 + 8 + 16;
constexpr std::uint32_t kNameLayout = 1;
constexpr std::size_t kNameHeadBytes = 12;

static_assert(kNameAt + kObjectNameBytesMax + kTailBytes < kIndexKeyBytesMax);

// Highest byte first, so that keys are ordered as their numbers.
template <typename T>
std::array<std::byte, sizeof(T)> big(T number) {
    std::array<std::byte, sizeof(T)> bytes;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        bytes[i] = static_cast<std::byte>(number >> (8 * (sizeof(T) - 1 - i)));
    }
    return bytes;
}

std::uint64_t get_big(Bytes bytes) {
    std::uint64_t number = 0;
    for (const std::byte each : bytes) number = number << 8 | std::to_integer<std::uint64_t>(each);
    return number;
}

Bytes text_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

}  // namespace

Result<void> check_name(std::string_view name) {
    if (!name.empty() && name.size() <= kObjectNameBytesMax && !name.contains('\0')) return {};
    return std::unexpected(Error{.code = Errc::kInvalid, .context = "name of an object"});
}

// FNV-1a over the pool and the name, then the finisher of SplitMix64: FNV alone leaves similar
// names in neighbouring shards.
std::uint64_t hash_name(NameRef name) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](std::byte byte) {
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
    };
    for (const std::byte byte : big(name.pool)) add(byte);
    for (const std::byte byte : text_bytes(name.name)) add(byte);
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    return hash ^ hash >> 31;
}

bool reserved_before(NameRef a, NameRef b) {
    return std::tuple(hash_name(a), a.pool, a.name) < std::tuple(hash_name(b), b.pool, b.name);
}

// -- keys --

NameKey::NameKey(NameKind kind) : size_(1) {
    bytes_[0] = static_cast<std::byte>(kind);
}

void NameKey::add(Bytes bytes) {
    ENSURE(bytes.size() <= bytes_.size() - size_);
    std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += bytes.size();
}

void NameKey::add_name(NameRef name) {
    ENSURE(name.name.size() <= kObjectNameBytesMax);
    add(big(name.pool));
    add(text_bytes(name.name));
}

// Fills the key up to the highest possible one that begins with its bytes.
void NameKey::fill() {
    std::ranges::fill(std::span(bytes_).subspan(size_), std::byte{0xff});
    size_ = bytes_.size();
}

NameKey NameKey::disk(const devices::DiskId& disk) {
    NameKey key(NameKind::kDisk);
    key.add(disk);
    return key;
}

NameKey NameKey::claim(NameKind kind, const NameClaim& claim) {
    NameKey key(kind);
    key.add_name({.pool = claim.pool, .name = claim.name});
    key.add(big(std::uint8_t{0}));
    key.add(big(~claim.version));
    key.add(big(claim.fid.high));
    key.add(big(claim.fid.low));
    return key;
}

NameKey NameKey::first_claim(NameRef name) {
    NameKey key(NameKind::kClaim);
    key.add_name(name);
    key.add(big(std::uint8_t{0}));
    return key;
}

NameKey NameKey::last_claim(NameRef name) {
    NameKey key = first_claim(name);
    key.fill();
    return key;
}

NameKey NameKey::first_with_prefix(NameKind kind, NameRef prefix) {
    NameKey key(kind);
    key.add_name(prefix);
    return key;
}

NameKey NameKey::last_with_prefix(NameKind kind, NameRef prefix) {
    NameKey key = first_with_prefix(kind, prefix);
    key.fill();
    return key;
}

NameKey NameKey::behind_name(NameRef name) {
    NameKey key(NameKind::kClaim);
    key.add_name(name);
    key.add(big(std::uint8_t{1}));
    return key;
}

NameKey NameKey::last_of(NameKind kind) {
    NameKey key(kind);
    key.fill();
    return key;
}

NameKey NameKey::behind(Bytes key) {
    NameKey next;
    next.add(key);
    next.add(big(std::uint8_t{0}));
    return next;
}

Result<StoredClaim> read_claim(NameKind kind, IndexEntry entry) {
    const Bytes key = entry.key;
    if (key.size() <= kNameAt + kTailBytes || key.front() != static_cast<std::byte>(kind) ||
        !entry.value.empty()) {
        return corrupt("claim in the index of names");
    }
    const Bytes name = key.subspan(kNameAt, key.size() - kNameAt - kTailBytes);
    const Bytes tail = key.last(kTailBytes);
    const StoredClaim claim{
        .name = {.pool = static_cast<std::uint32_t>(get_big(key.subspan(1, 4))),
                 .name = {reinterpret_cast<const char*>(name.data()), name.size()}},
        .version = ~get_big(tail.subspan(1, 8)),
        .fid = {.high = get_big(tail.subspan(9, 8)), .low = get_big(tail.subspan(17, 8))}};
    if (tail.front() != std::byte{0} || !check_name(claim.name.name) ||
        claim.version >= kNameVersionEnd) {
        return corrupt("claim in the index of names");
    }
    return claim;
}

// -- values --

Bytes write_name_head(ValueBuffer& into, const NameHead& head) {
    into.clear();
    const auto value = into.grow(kNameHeadBytes);
    put_little(value, 0, kNameLayout);
    put_little(value, 4, head.shard);
    put_little(value, 8, head.shard_count);
    return into.bytes();
}

Result<NameHead> read_name_head(Bytes value) {
    if (value.size() != kNameHeadBytes || get_little<std::uint32_t>(value, 0) != kNameLayout) {
        return corrupt("head of an index of names");
    }
    const NameHead head{.shard = get_little<std::uint32_t>(value, 4),
                        .shard_count = get_little<std::uint32_t>(value, 8)};
    if (head.shard >= head.shard_count) return corrupt("head of an index of names");
    return head;
}

Bytes write_known_seq(ValueBuffer& into, std::uint64_t seq) {
    into.clear();
    put_little(into.grow(sizeof seq), 0, seq);
    return into.bytes();
}

Result<std::uint64_t> read_known_seq(Bytes value) {
    if (value.size() != sizeof(std::uint64_t)) return corrupt("what is known of a disk's names");
    return get_little<std::uint64_t>(value, 0);
}

}  // namespace fopd::store
