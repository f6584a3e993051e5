#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "store/fid.h"
#include "store/index.h"
#include "store/object.h"

namespace fopd::store {

// Copies of objects on cartridges, the use of cartridges, and recalls: keys and values of a disk's
// index, as bytes; see docs/formats/index.md.

// A cartridge since it was formatted last.
struct Cartridge {
    VsnText vsn{};
    std::uint32_t generation = 0;  // Increases with each format; at most kGenerationMax.

    friend auto operator<=>(const Cartridge&, const Cartridge&) = default;
};

// Where the bytes of a copy begin on a cartridge. Orders copies as the tape does.
struct CopyPosition {
    std::uint32_t file = 0;    // The number of the tape file, from 1.
    std::uint64_t member = 0;  // The offset of the copy's first byte in the data of the file.

    friend auto operator<=>(const CopyPosition&, const CopyPosition&) = default;
};

// The bytes [offset, offset + length) of an object, as they were in a version of its content.
struct Copy {
    Fid fid{};
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t version = 0;  // Object::content_version() of the bytes.
    Cartridge cartridge{};
    CopyPosition position{};
    std::uint64_t block = 0;     // The logical block of the tape at which the tape file begins.
    std::uint32_t checksum = 0;  // CRC-32C of the bytes.
    // Seconds since 1970 UTC when the tape file was complete on the tape.
    std::uint32_t written_s = 0;

    std::uint64_t end() const { return offset + length; }
    friend bool operator==(const Copy&, const Copy&) = default;
};

// Identifies a copy: an object has at most one that begins at an offset on a cartridge.
struct CopyKey {
    Fid fid{};
    std::uint64_t offset = 0;
    VsnText vsn{};

    friend auto operator<=>(const CopyKey&, const CopyKey&) = default;
};

inline CopyKey key_of(const Copy& copy) {
    return {.fid = copy.fid, .offset = copy.offset, .vsn = copy.cartridge.vsn};
}

// All that was ever recorded of copies on a cartridge of this generation, whether they are live or
// dead.
struct CartridgeTotal {
    Cartridge cartridge{};
    std::uint64_t copies = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const CartridgeTotal&, const CartridgeTotal&) = default;
};

// A request to bring an object's bytes back to the disk, or to keep them there (a pin), or both. An
// object has at most one.
struct Recall {
    // Increases with each recall; 0: the bytes need not be brought back, the record is only a pin.
    std::uint64_t ticket = 0;
    std::int32_t priority = 0;
    WallTime asked{};
    WallTime pinned_until{};  // Before `asked`: not pinned.
    ClientId client{};
    std::string requester{};  // The principal; at most kPrincipalBytesMax.

    friend bool operator==(const Recall& one, const Recall& other) {
        return one.ticket == other.ticket && one.priority == other.priority &&
               one.asked.unix_ns == other.asked.unix_ns &&
               one.pinned_until.unix_ns == other.pinned_until.unix_ns &&
               one.client == other.client && one.requester == other.requester;
    }
};

struct RecallOf {
    Fid fid{};
    Recall recall{};
};

// How many copies an object may have, so that a change of the object ends all of them in one turn.
inline constexpr std::size_t kCopiesOfObjectMax = 512;
// The numbers of a copy are less, apart from its offset in the object: they have six bytes in the
// index.
inline constexpr std::uint64_t kTapeNumberEnd = 1ULL << 48;
inline constexpr std::uint32_t kGenerationMax = 0xffff;

// The object and offset of the copy at a position of a cartridge.
struct PositionOwner {
    CopyKey key{};
    CopyPosition position{};
};

// kCorrupt: the bytes are not a valid key or value.
Result<CopyKey> read_copy_key(Bytes key);
Result<Copy> read_copy(Bytes key, Bytes value);
Result<PositionOwner> read_position(Bytes key, Bytes value);
Result<CartridgeTotal> read_total(Bytes key, Bytes value);
Result<Recall> read_recall(Bytes value);

inline Key copy_key(const CopyKey& copy) {
    return Key::copy(copy.fid, copy.offset, copy.vsn);
}
inline Key position_key(const VsnText& vsn, const CopyPosition& position) {
    return Key::position(vsn, position.file, position.member);
}

// Whether it has a range of an object, a position that a tape can have, and a VSN of printable
// characters that does not begin with a space.
bool is_copy_valid(const Copy& copy);

// REQUIRES: a valid copy, and a requester that is no longer than allowed. The result is valid until
// the next write into the same buffer.
Bytes write_copy(ValueBuffer& into, const Copy& copy);
Bytes write_position(ValueBuffer& into, const CopyKey& copy);
Bytes write_total(ValueBuffer& into, const CartridgeTotal& total);
Bytes write_recall(ValueBuffer& into, const Recall& recall);

// Whether a copy is one of the bytes that the object has. Every other copy is dead.
bool is_of_content(const Copy& copy, const Object& object);

// Bytes of the keys and of the values that have a fixed size.
inline constexpr std::size_t kCopyKeyBytes = 1 + 16 + 8 + 6;
inline constexpr std::size_t kCopyValueBytes = 38;
inline constexpr std::size_t kPositionKeyBytes = 1 + 6 + 4 + 6;
inline constexpr std::size_t kPositionValueBytesMax = 24;
inline constexpr std::size_t kTotalKeyBytes = 1 + 6;
inline constexpr std::size_t kTotalValueBytes = 20;
inline constexpr std::size_t kRecallHeadBytes = 48;
inline constexpr std::size_t kRecallBytesMax = 17 + kRecallHeadBytes + kPrincipalBytesMax;
static_assert(kRecallBytesMax <= 300);

}  // namespace fopd::store
