// Goal: the headers of the archive are those of pax, and no other ones are taken.
#include "store/tape/pax.h"

#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/store/tape/tape_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

MemberHeader some_header() {
    MemberHeader header;
    header.member = some_member(42, 10'000);
    header.member.checksum = 0x1234abcd;
    header.stamp = {.node = some_identity().node,
                    .generation = 3,
                    .kind = TapeFileKind::kObjects,
                    .index = {.file = 5, .block = 777}};
    header.path = member_path(header, 0xfedcba9876543210, 2);
    return header;
}

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<MemberHeader> parse(std::span<const std::byte> bytes) {
    const auto size = member_header_bytes(bytes.first<kPaxUnitBytes>());
    if (!size) return std::unexpected(size.error());
    if (*size != bytes.size()) return std::unexpected(Error{.code = Errc::kInvalid});
    return parse_member_header(bytes);
}

}  // namespace

TEST_CASE("store tape pax: the records of a header are as documented", "[store][tape]") {
    const auto bytes = encode_member_header(some_header(), 0);
    const std::string_view records = text_of(bytes).substr(512, bytes.size() - 1024);

    REQUIRE(records.starts_with(
        "74 path=0003000000000001000000000000002a.0000000000000002fedcba9876543210\n"
        "14 size=10000\n"
        "22 mtime=1700000001.5\n"
        "27 uname=alice@example.org\n"
        "17 gname=physics\n"
        "38 SCHILY.xattr.user.fopd.kind=object\n"
        "64 SCHILY.xattr.user.fopd.node=a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\n"
        "39 SCHILY.xattr.user.fopd.generation=3\n"
        "38 SCHILY.xattr.user.fopd.index=5:777\n"
        "63 SCHILY.xattr.user.fopd.fid=0003000000000001000000000000002a\n"
        "38 SCHILY.xattr.user.fopd.version=142\n"
        "35 SCHILY.xattr.user.fopd.offset=0\n"
        "37 SCHILY.xattr.user.fopd.size=10000\n"
        "44 SCHILY.xattr.user.fopd.object_size=10000\n"
        "44 SCHILY.xattr.user.fopd.checksum=1234abcd\n"
        "54 SCHILY.xattr.user.fopd.created=1700000000000000000\n"
        "54 SCHILY.xattr.user.fopd.changed=1700000001500000000\n"
        "35 SCHILY.xattr.user.fopd.mode=640\n"
        "42 SCHILY.xattr.user.fopd.name_version=49\n"
        "49 SCHILY.xattr.user.fopd.name=runs/n\xc3\xb6 42 50%=x\n"
        "36 SCHILY.xattr.user.fopd.pool=cold\n"
        "50 SCHILY.xattr.user.fopd.owner=alice@example.org\n"
        "40 SCHILY.xattr.user.fopd.group=physics\n"
        "43 SCHILY.xattr.user.fopd.collection=run 7\n"));
}

TEST_CASE("store tape pax: bytes begin at a multiple of 4096 wherever a header is",
          "[store][tape]") {
    for (std::uint64_t position = 0; position < 40 * kPaxUnitBytes; position += kPaxUnitBytes) {
        CAPTURE(position);
        const auto bytes = encode_member_header(some_header(), position);

        REQUIRE((position + bytes.size()) % kMemberBlockBytes == 0);
        REQUIRE(bytes.size() <= kMemberHeaderBytesMax);
        REQUIRE(parse(bytes) == some_header());
    }
}

TEST_CASE("store tape pax: the longest texts and largest numbers fit", "[store][tape]") {
    MemberHeader header = some_header();
    Member& member = header.member;
    member.fid = {.high = UINT64_MAX, .low = UINT64_MAX};
    member.version = member.name_version = UINT64_MAX;
    member.object_bytes = kMemberBytesMax;
    member.offset = kMemberBytesMax - kMemberPieceBytesMax;
    member.size_bytes = kMemberPieceBytesMax;
    member.created_ns = INT64_MIN;
    member.changed_ns = INT64_MIN;
    member.mode = 0777;
    member.name = std::string(kMemberNameBytesMax, 'n');
    member.pool = member.owner = member.group = std::string(kMemberWordBytesMax, 'w');
    member.collection = std::string(kMemberWordBytesMax, 'c');
    header.stamp.generation = kTapeGenerationMax;
    header.stamp.index = {.file = kTapeFileNumberMax, .block = UINT64_MAX};
    header.path = member_path(header, UINT64_MAX, UINT64_MAX);
    for (std::uint64_t position = 0; position < 4096; position += kPaxUnitBytes) {
        const auto bytes = encode_member_header(header, position);
        REQUIRE(parse(bytes) == header);
    }
    const auto list = encode_checksums_header(header);
    REQUIRE(check_checksums_header(std::span(list).first<kPaxUnitBytes>(), header).has_value());
}

TEST_CASE("store tape pax: an object without name, owner and bytes has a header", "[store][tape]") {
    MemberHeader header = some_header();
    header.member = {};
    header.path = member_path(header, 1, 0);

    REQUIRE(parse(encode_member_header(header, 0)) == header);
}

TEST_CASE("store tape pax: a changed byte never gives another header", "[store][tape]") {
    const MemberHeader header = some_header();
    const auto right = encode_member_header(header, 0);
    std::size_t refused = 0;
    for (std::size_t at = 0; at < right.size(); ++at) {
        auto changed = right;
        changed[at] ^= std::byte{0x04};
        const auto parsed = parse(changed);
        // Text has no checksum of its own in an archive; its place keeps it apart from the others.
        if (!parsed) ++refused;
        if (parsed && *parsed != header) {
            REQUIRE(parsed->member.size_bytes == header.member.size_bytes);
            REQUIRE(at >= 512);
        }
    }
    REQUIRE(refused > 1024);
}

TEST_CASE("store tape pax: invalid fields are refused", "[store][tape]") {
    const auto [name, text] = GENERATE(table<std::string_view, std::string_view>({
        {"fid", "0003000000000001000000000000002"},
        {"fid", "0003000000000001000000000000002A"},
        {"version", "01"},
        {"version", "-1"},
        {"version", "18446744073709551616"},
        {"offset", "4095"},
        {"size", "10001"},
        {"object_size", "9999"},
        {"checksum", "1234abc"},
        {"created", "+1"},
        {"created", "-0"},
        {"mode", "1777"},
        {"mode", "800"},
        {"name", "a\nb"},
        {"name", "a\xff"},
        {"owner", "0123456789012345678901234567890123456789012345678901234567890123-"},
    }));
    CAPTURE(name, text);
    MemberFields fields;
    bool refused = false;
    for (const TapeField& field : member_fields(some_header().member)) {
        const auto set = fields.set(field.name, field.name == name ? text : field.text);
        refused |= !set.has_value();
    }
    refused |= !fields.finish().has_value();

    REQUIRE(refused);
}

TEST_CASE("store tape pax: a field that is missing or comes twice is refused", "[store][tape]") {
    const Member member = some_header().member;
    for (const TapeField& left_out : member_fields(member)) {
        CAPTURE(left_out.name);
        MemberFields fields;
        for (const TapeField& field : member_fields(member)) {
            if (field.name == left_out.name) continue;
            REQUIRE(fields.set(field.name, field.text) == true);
            REQUIRE_FALSE(fields.set(field.name, field.text).has_value());
        }
        REQUIRE_FALSE(fields.finish().has_value());
    }
    MemberFields fields;
    REQUIRE(fields.set("later", "1") == false);
}
