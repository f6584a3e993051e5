#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "devices/label.h"
#include "store/fid.h"
#include "store/tape/labels.h"

namespace fopd::store {

inline constexpr std::size_t kMemberNameBytesMax = 480;
// The limit for the names of pool, owner, group and collection.
inline constexpr std::size_t kMemberWordBytesMax = 64;
inline constexpr std::uint64_t kMemberBlockBytes = 4096;
// The largest piece. The list of its checksums, too, has a size that every tar can read.
inline constexpr std::uint64_t kMemberPieceBytesMax = 1ULL << 40;
// No object is larger.
inline constexpr std::uint64_t kMemberBytesMax = 1ULL << 60;

// A copy of an object, or of a piece of it, on a tape: everything that is written there beside the
// bytes, so that the tape alone gives the object back.
struct Member {
    Fid fid{};
    std::uint64_t version = 0;  // The version of the object's content.
    std::uint64_t offset = 0;   // Where the piece begins in the object: a whole number of blocks.
    std::uint64_t size_bytes = 0;
    std::uint64_t object_bytes = 0;
    // The CRC-32C of the block checksums, each four bytes, little endian. A block has 4096 bytes;
    // the checksum of a shorter one, at the end, is that of its bytes and zeros.
    std::uint32_t checksum = 0;
    std::int64_t created_ns = 0;  // WallTime, as `changed_ns`.
    std::int64_t changed_ns = 0;
    std::uint16_t mode = 0;  // Nine permission bits.
    std::uint64_t name_version = 0;
    std::string name{};  // Empty: the object has none.
    std::string pool{};
    std::string owner{};
    std::string group{};
    std::string collection{};

    std::uint64_t blocks() const {
        return size_bytes / kMemberBlockBytes + (size_bytes % kMemberBlockBytes != 0 ? 1 : 0);
    }
    friend bool operator==(const Member&, const Member&) = default;
};

// True if every field is within its limits and all text is UTF-8 without control characters.
bool is_valid(const Member& member);

// The identity of a cartridge, written in its label VOL1 and in every file on it.
struct TapeIdentity {
    Vsn vsn;
    devices::NodeId node{};
    // Grows with each format of the cartridge; at most kTapeGenerationMax.
    std::uint32_t generation = 1;

    friend bool operator==(const TapeIdentity&, const TapeIdentity&) = default;
};
inline constexpr std::uint32_t kTapeGenerationMax = 99'999'999;

// The position of an index file on the tape. File 0: there is no index file.
struct IndexPosition {
    std::uint64_t file = 0;
    std::uint64_t block = 0;

    friend bool operator==(const IndexPosition&, const IndexPosition&) = default;
};

// A name and its text, as in the header of a member and in the lines of an index file.
struct TapeField {
    std::string_view name;
    std::string text;
};

// The fields of a member, in their order.
std::vector<TapeField> member_fields(const Member& member);

// Takes the fields of a member in any order.
class MemberFields {
public:
    // False: a field of a member does not have this name. kCorrupt: the text is wrong, or the field
    // came before.
    Result<bool> set(std::string_view name, std::string_view text);
    // kCorrupt: fields are missing, or contradict each other.
    Result<Member> finish() const;

private:
    Member member_;
    std::uint32_t seen_ = 0;  // A bit for each field.
};

// Parts of fields that have a form of their own.
// As devices::format_id() writes it; nothing in any other form.
std::optional<devices::NodeId> parse_node(std::string_view text);
std::string hex_text(std::uint64_t number, std::size_t digits);
// `digits` lower case hexadecimal digits. Nothing if the text is not so.
std::optional<std::uint64_t> parse_hex(std::string_view text, std::size_t digits);
std::string index_position_text(const IndexPosition& position);  // "12:3456"
std::optional<IndexPosition> parse_index_position(std::string_view text);
// A whole number without zeros before it.
std::optional<std::uint64_t> parse_decimal(std::string_view text);

}  // namespace fopd::store
