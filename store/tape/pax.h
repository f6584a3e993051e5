#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "store/tape/member.h"

namespace fopd::store {

// The headers of the pax archive that is the payload of a tape file; see docs/formats/tape.md.
// Everything in the archive is in units of 512 bytes.
inline constexpr std::size_t kPaxUnitBytes = 512;
// The largest header of a member.
inline constexpr std::size_t kMemberHeaderBytesMax = 8192;

constexpr std::uint64_t pax_padding(std::uint64_t size_bytes) {
    return (kPaxUnitBytes - size_bytes % kPaxUnitBytes) % kPaxUnitBytes;
}

// The fields of a member's header that describe the tape and the archive.
struct MemberStamp {
    devices::NodeId node{};
    std::uint32_t generation = 1;
    // kObjects: `member` is a copy of an object. kIndex: of the member only size and checksum
    // count, which are a part of an index file.
    TapeFileKind kind = TapeFileKind::kObjects;
    IndexPosition index{};  // The last index file before this file.

    friend bool operator==(const MemberStamp&, const MemberStamp&) = default;
};

struct MemberHeader {
    Member member{};
    MemberStamp stamp{};
    std::string path{};

    friend bool operator==(const MemberHeader&, const MemberHeader&) = default;
};

// The name of a member in the archive; that of its list of block checksums ends with ".meta" behind
// it. `file_id` is the number of the file if it is an index; `ordinal` counts the members of a tape
// file.
std::string member_path(const MemberHeader& header, std::uint64_t file_id, std::uint64_t ordinal);

// The header of the member, to be written at `position` of the archive. The member's bytes, which
// follow, begin at a multiple of 4096.
// REQUIRES: the member is valid; position is a multiple of 512; the path is member_path().
std::vector<std::byte> encode_member_header(const MemberHeader& header, std::uint64_t position);

// The size of the header that begins with these bytes; 0: the archive ends here. kCorrupt: it is
// not the header of a member.
Result<std::size_t> member_header_bytes(std::span<const std::byte, kPaxUnitBytes> bytes);
// kCorrupt: not the header of a member. REQUIRES: as many bytes as member_header_bytes() says.
Result<MemberHeader> parse_member_header(std::span<const std::byte> bytes);

// The header of the list of the block checksums, which follows the member's bytes. The list has a
// line for each block: 8 hexadecimal digits.
inline constexpr std::size_t kChecksumLineBytes = 9;
inline std::uint64_t checksum_list_bytes(const Member& member) {
    return member.blocks() * kChecksumLineBytes;
}
std::vector<std::byte> encode_checksums_header(const MemberHeader& header);
// kCorrupt: it is not the header of the list of this member.
Result<void> check_checksums_header(std::span<const std::byte, kPaxUnitBytes> bytes,
                                    const MemberHeader& header);

}  // namespace fopd::store
