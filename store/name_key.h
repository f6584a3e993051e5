#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "store/index.h"
#include "store/name_sink.h"
#include "store/object.h"

namespace fopd::store {

// Keys and values of an index of names; see docs/formats/names.md.

enum class NameKind : std::uint8_t {
    kDisk = 'a',       // Up to which entry of a disk's log names are known.
    kHead = 'h',       // Which shard this is.
    kClaim = 'n',      // A claim of an object; the owner's is the first of its name.
    kOutranked = 'x',  // A claim that is not the owner's, again.
};

struct NameRef {
    std::uint32_t pool = 0;
    std::string_view name{};  // Borrowed.
};

// kInvalid: not 1 to 480 bytes, or one of them is zero. Fops that give names check more.
Result<void> check_name(std::string_view name);

// Selects the shard of a name. It must never change: shards on disks depend on it.
std::uint64_t hash_name(NameRef name);
inline std::uint32_t shard_of(NameRef name, std::uint32_t shard_count) {
    return static_cast<std::uint32_t>(hash_name(name) % shard_count);
}
// The order in which several names are reserved, to avoid deadlock.
bool reserved_before(NameRef a, NameRef b);

// A claim as it is stored in an index. Borrowed.
struct StoredClaim {
    NameRef name{};
    std::uint64_t version = 0;
    Fid fid{};

    NameClaim claim() const {
        return {.pool = name.pool, .name = std::string(name.name), .version = version, .fid = fid};
    }
};

// A key, stored in place.
class NameKey {
public:
    static NameKey head() { return NameKey(NameKind::kHead); }
    static NameKey disk(const devices::DiskId& disk);
    static NameKey claim(NameKind kind, const NameClaim& claim);
    // The lowest and the highest possible claim of the name, or of names with this prefix.
    static NameKey first_claim(NameRef name);
    static NameKey last_claim(NameRef name);
    static NameKey first_with_prefix(NameKind kind, NameRef prefix);
    static NameKey last_with_prefix(NameKind kind, NameRef prefix);
    // The key that follows all claims of the name and precedes all claims of the next name.
    static NameKey behind_name(NameRef name);
    static NameKey first_of(NameKind kind) { return NameKey(kind); }
    static NameKey last_of(NameKind kind);
    // The next possible key after this one. REQUIRES: it is shorter than a key may be.
    static NameKey behind(Bytes key);

    Bytes bytes() const { return std::span(bytes_).first(size_); }
    operator Bytes() const { return bytes(); }  // NOLINT(google-explicit-constructor)

private:
    NameKey() = default;
    explicit NameKey(NameKind kind);

    void add(Bytes bytes);
    void add_name(NameRef name);
    void fill();

    std::array<std::byte, kIndexKeyBytesMax> bytes_;
    std::size_t size_ = 0;
};

// kCorrupt, here and below: the bytes are not a valid entry.
Result<StoredClaim> read_claim(NameKind kind, IndexEntry entry);

// Into how many shards a node's names are divided, and which of them this is.
struct NameHead {
    std::uint32_t shard = 0;
    std::uint32_t shard_count = 1;

    friend bool operator==(const NameHead&, const NameHead&) = default;
};
Bytes write_name_head(ValueBuffer& into, const NameHead& head);
Result<NameHead> read_name_head(Bytes value);

Bytes write_known_seq(ValueBuffer& into, std::uint64_t seq);
Result<std::uint64_t> read_known_seq(Bytes value);

}  // namespace fopd::store
