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

// What an index of names holds, as bytes; docs/formats/names.md has the layouts.

enum class NameKind : std::uint8_t {
    kDisk = 'a',   // How much of a disk's log is known.
    kHead = 'h',   // Which names these are.
    kClaim = 'n',  // An object that claims a name; of several of one name the owner comes first.
    kOutranked = 'x',  // The claims again, without those of the owners.
};

struct NameRef {
    std::uint32_t pool = 0;
    std::string_view name{};  // Borrowed.
};

// kInvalid for what cannot be a name: 1 to 480 bytes, none of them zero. More is asked of those who
// give names.
Result<void> check_name(std::string_view name);

// Which of so many shards has a name: the same for all times and machines.
std::uint64_t hash_name(NameRef name);
inline std::uint32_t shard_of(NameRef name, std::uint32_t shard_count) {
    return static_cast<std::uint32_t>(hash_name(name) % shard_count);
}
// The order in which whoever reserves several names takes them, so that nobody waits in a circle.
bool reserved_before(NameRef a, NameRef b);

// A claim as it lies in an index. Borrowed.
struct StoredClaim {
    NameRef name{};
    std::uint64_t version = 0;
    Fid fid{};

    NameClaim claim() const {
        return {.pool = name.pool, .name = std::string(name.name), .version = version, .fid = fid};
    }
};

// A key, where it lies.
class NameKey {
public:
    static NameKey head() { return NameKey(NameKind::kHead); }
    static NameKey disk(const devices::DiskId& disk);
    static NameKey claim(NameKind kind, const NameClaim& claim);
    // No claim of the name is before, or after, or none that begins so.
    static NameKey first_claim(NameRef name);
    static NameKey last_claim(NameRef name);
    static NameKey first_with_prefix(NameKind kind, NameRef prefix);
    static NameKey last_with_prefix(NameKind kind, NameRef prefix);
    // Behind all claims of the name, and before those of the next.
    static NameKey behind_name(NameRef name);
    static NameKey first_of(NameKind kind) { return NameKey(kind); }
    static NameKey last_of(NameKind kind);
    // What comes next after a key. Requires: it is shorter than a key may be.
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

// kCorrupt when the bytes are no such thing.
Result<StoredClaim> read_claim(NameKind kind, IndexEntry entry);

// How a node's names are divided, and which part this is.
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
