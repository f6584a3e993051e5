#include "store/tape/pax.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/ensure.h"
#include "core/whole_number.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

// The fields of a member are extended attributes for tar, which are the only keywords of others
// that tar takes without a warning.
constexpr std::string_view kAttributePrefix = "SCHILY.xattr.user.fopd.";
constexpr std::string_view kExtendedName = "fopd.pax";
// The largest number in 11 octal digits.
constexpr std::uint64_t kOctalMax = (1ULL << 33) - 1;
constexpr std::int64_t kNanoseconds = 1'000'000'000;

// A header of one unit, with the fields of ustar.
struct UnitHeader {
    std::string_view name;
    std::uint64_t size_bytes = 0;
    std::uint64_t mode = 0;
    std::int64_t seconds = 0;
    char type = '0';
};

constexpr std::size_t kPaxChecksumAt = 148;
constexpr std::size_t kChecksumWidth = 8;

using UnitSpan = std::span<std::byte, kPaxUnitBytes>;
using ConstUnitSpan = std::span<const std::byte, kPaxUnitBytes>;

void put_field(UnitSpan unit, std::size_t at, std::string_view text) {
    std::ranges::copy(std::as_bytes(std::span(text)), unit.data() + at);
}

// Digits, and a zero byte behind them.
void put_octal(UnitSpan unit, std::size_t at, std::size_t width, std::uint64_t number) {
    for (std::size_t i = width - 1; i > 0; --i, number /= 8) {
        unit[at + i - 1] = static_cast<std::byte>('0' + number % 8);
    }
    unit[at + width - 1] = std::byte{0};
}

std::uint64_t sum_unit(ConstUnitSpan unit) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < unit.size(); ++i) {
        const bool hidden = i >= kPaxChecksumAt && i < kPaxChecksumAt + kChecksumWidth;
        sum += hidden ? ' ' : std::to_integer<std::uint64_t>(unit[i]);
    }
    return sum;
}

void encode_unit(UnitSpan unit, const UnitHeader& header) {
    std::ranges::fill(unit, std::byte{0});
    ENSURE(header.name.size() <= 100);
    put_field(unit, 0, header.name);
    put_octal(unit, 100, 8, header.mode);
    put_octal(unit, 108, 8, 0);
    put_octal(unit, 116, 8, 0);
    // Larger sizes, and earlier and later times, are in the extended header only.
    put_octal(unit, 124, 12, header.size_bytes <= kOctalMax ? header.size_bytes : 0);
    const std::uint64_t seconds =
        header.seconds < 0 ? 0 : static_cast<std::uint64_t>(header.seconds);
    put_octal(unit, 136, 12, std::min(seconds, kOctalMax));
    unit[156] = static_cast<std::byte>(header.type);
    put_field(unit, 257,
              std::string_view("ustar\0"
                               "00",
                               8));
    put_octal(unit, 329, 8, 0);
    put_octal(unit, 337, 8, 0);
    put_octal(unit, kPaxChecksumAt, 7, sum_unit(unit));
    unit[kPaxChecksumAt + 7] = std::byte{' '};
}

std::string_view unit_text(ConstUnitSpan unit, std::size_t at, std::size_t width) {
    const std::string_view text(reinterpret_cast<const char*>(unit.data()) + at, width);
    return text.substr(0, std::min(text.find('\0'), width));
}

struct ParsedUnit {
    std::string_view name;  // Borrowed.
    std::uint64_t size_bytes = 0;
    char type = 0;
};

// Nothing if it is not a header, or its sum is wrong.
std::optional<ParsedUnit> parse_unit(ConstUnitSpan unit) {
    const std::string_view magic(reinterpret_cast<const char*>(unit.data()) + 257, 8);
    if (magic != std::string_view("ustar\0"
                                  "00",
                                  8))
        return std::nullopt;
    const auto sum = core::whole_number(unit_text(unit, kPaxChecksumAt, 7), 8);
    if (!sum || *sum != sum_unit(unit)) return std::nullopt;
    const auto size = core::whole_number(unit_text(unit, 124, 12), 8);
    if (!size) return std::nullopt;
    return ParsedUnit{
        .name = unit_text(unit, 0, 100), .size_bytes = *size, .type = static_cast<char>(unit[156])};
}

// A record of an extended header: its length in bytes, all included, and name=text.
std::string pax_record(std::string_view name, std::string_view text) {
    const std::size_t rest = 1 + name.size() + 1 + text.size() + 1;
    std::size_t length = rest + 1;
    while (rest + std::to_string(length).size() != length) {
        length = rest + std::to_string(length).size();
    }
    std::string record = std::to_string(length);
    record.append(" ").append(name).append("=").append(text).append("\n");
    return record;
}

// Of exactly this length.
std::string comment_record(std::size_t length) {
    const std::size_t rest = std::to_string(length).size() + std::strlen(" comment=\n");
    ENSURE(length >= rest);
    return pax_record("comment", std::string(length - rest, ' '));
}
constexpr std::size_t kCommentBytesMin = 12;

// Seconds since 1970, with a fraction if there is one.
std::string time_text(std::int64_t ns) {
    std::int64_t seconds = ns / kNanoseconds;
    std::int64_t fraction = ns % kNanoseconds;
    const bool negative = ns < 0;
    if (negative) {
        seconds = -seconds;
        fraction = -fraction;
    }
    std::string text = (negative ? "-" : "") + std::to_string(seconds);
    if (fraction == 0) return text;
    std::string digits = std::to_string(fraction + kNanoseconds).substr(1);
    while (digits.ends_with('0')) digits.pop_back();
    return text + "." + digits;
}

void add_attribute(std::string& body, std::string_view name, std::string_view text) {
    body += pax_record(std::string(kAttributePrefix).append(name), text);
}

std::string extended_records(const MemberHeader& header) {
    const Member& member = header.member;
    std::string body = pax_record("path", header.path);
    body += pax_record("size", std::to_string(member.size_bytes));
    body += pax_record("mtime", time_text(member.changed_ns));
    if (!member.owner.empty()) body += pax_record("uname", member.owner);
    if (!member.group.empty()) body += pax_record("gname", member.group);
    add_attribute(body, "kind", header.stamp.kind == TapeFileKind::kIndex ? "index" : "object");
    add_attribute(body, "node", devices::format_id(header.stamp.node));
    add_attribute(body, "generation", std::to_string(header.stamp.generation));
    add_attribute(body, "index", index_position_text(header.stamp.index));
    for (const TapeField& field : member_fields(member)) {
        add_attribute(body, field.name, field.text);
    }
    return body;
}

// The parts of an extended header that are not fields of the member.
struct StampFields {
    std::optional<std::string> kind;
    std::optional<devices::NodeId> node;
    std::optional<std::uint64_t> generation;
    std::optional<IndexPosition> index;
    std::optional<std::string> path;
    std::optional<std::uint64_t> size_bytes;
};

// Unknown names are from a later version, or for tar.
Result<void> take_record(std::string_view name, std::string_view text, StampFields& stamp,
                         MemberFields& fields) {
    if (name == "path") stamp.path = text;
    if (name == "size") stamp.size_bytes = parse_decimal(text);
    if (!name.starts_with(kAttributePrefix)) return {};
    const std::string_view field = name.substr(kAttributePrefix.size());
    if (field == "kind") {
        stamp.kind = text;
    } else if (field == "node") {
        stamp.node = parse_node(text);
    } else if (field == "generation") {
        stamp.generation = parse_decimal(text);
    } else if (field == "index") {
        stamp.index = parse_index_position(text);
    } else {
        const auto set = fields.set(field, text);
        if (!set) return std::unexpected(set.error());
    }
    return {};
}

Result<void> take_records(std::string_view body, StampFields& stamp, MemberFields& fields) {
    while (!body.empty()) {
        const std::size_t space = body.find(' ');
        if (space == std::string_view::npos) return corrupt("a record of a pax header");
        const auto length = parse_decimal(body.substr(0, space));
        if (!length || *length <= space + 1 || *length > body.size()) {
            return corrupt("a record of a pax header");
        }
        const std::string_view record = body.substr(space + 1, *length - space - 1);
        const std::size_t equals = record.find('=');
        if (!record.ends_with('\n') || equals == std::string_view::npos) {
            return corrupt("a record of a pax header");
        }
        const std::string_view text = record.substr(equals + 1, record.size() - equals - 2);
        const auto taken = take_record(record.substr(0, equals), text, stamp, fields);
        if (!taken) return taken;
        body.remove_prefix(*length);
    }
    return {};
}

Result<MemberHeader> make_header(const StampFields& stamp, const MemberFields& fields) {
    auto member = fields.finish();
    if (!member) return std::unexpected(member.error());
    if (!stamp.kind || !stamp.node || !stamp.generation || !stamp.index || !stamp.path) {
        return corrupt("a pax header without all its records");
    }
    if (*stamp.generation > kTapeGenerationMax) return corrupt("the generation in a pax header");
    if (stamp.size_bytes != member->size_bytes) return corrupt("the sizes in a pax header");
    if (*stamp.kind != "object" && *stamp.kind != "index") {
        return corrupt("the kind in a pax header");
    }
    MemberHeader header;
    header.member = std::move(*member);
    header.stamp = {.node = *stamp.node,
                    .generation = static_cast<std::uint32_t>(*stamp.generation),
                    .kind = *stamp.kind == "index" ? TapeFileKind::kIndex : TapeFileKind::kObjects,
                    .index = *stamp.index};
    header.path = *stamp.path;
    return header;
}

std::string checksums_path(std::string_view member_path) {
    return std::string(member_path) + ".meta";
}

bool is_all_zero(ConstUnitSpan unit) {
    return std::ranges::all_of(unit, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

std::string member_path(const MemberHeader& header, std::uint64_t file_id, std::uint64_t ordinal) {
    const std::string first =
        header.stamp.kind == TapeFileKind::kIndex
            ? std::string("index")
            : hex_text(header.member.fid.high, 16) + hex_text(header.member.fid.low, 16);
    return first + "." + hex_text(ordinal, 16) + hex_text(file_id, 16);
}

std::vector<std::byte> encode_member_header(const MemberHeader& header, std::uint64_t position) {
    ENSURE(is_valid(header.member));
    ENSURE(position % kPaxUnitBytes == 0);
    std::string body = extended_records(header);
    std::size_t body_bytes = body.size() + kCommentBytesMin;
    body_bytes += pax_padding(body_bytes);
    const std::uint64_t end = position + 2 * kPaxUnitBytes + body_bytes;
    body_bytes += (kMemberBlockBytes - end % kMemberBlockBytes) % kMemberBlockBytes;
    body += comment_record(body_bytes - body.size());

    std::vector<std::byte> bytes(2 * kPaxUnitBytes + body_bytes);
    ENSURE(bytes.size() <= kMemberHeaderBytesMax);
    const std::int64_t seconds = header.member.changed_ns / kNanoseconds;
    encode_unit(UnitSpan(bytes.data(), kPaxUnitBytes),
                {.name = kExtendedName, .size_bytes = body_bytes, .mode = 0644, .type = 'x'});
    std::memcpy(bytes.data() + kPaxUnitBytes, body.data(), body.size());
    encode_unit(UnitSpan(bytes.data() + kPaxUnitBytes + body_bytes, kPaxUnitBytes),
                {.name = header.path,
                 .size_bytes = header.member.size_bytes,
                 .mode = header.member.mode,
                 .seconds = seconds});
    return bytes;
}

Result<std::size_t> member_header_bytes(std::span<const std::byte, kPaxUnitBytes> bytes) {
    if (is_all_zero(bytes)) return 0;
    const auto unit = parse_unit(bytes);
    if (!unit || unit->type != 'x') return corrupt("the header of a pax archive");
    const bool right = unit->size_bytes > 0 && unit->size_bytes % kPaxUnitBytes == 0 &&
                       unit->size_bytes <= kMemberHeaderBytesMax - 2 * kPaxUnitBytes;
    if (!right) return corrupt("the size of a pax header");
    return 2 * kPaxUnitBytes + static_cast<std::size_t>(unit->size_bytes);
}

Result<MemberHeader> parse_member_header(std::span<const std::byte> bytes) {
    ENSURE(bytes.size() >= 2 * kPaxUnitBytes);
    const auto unit = parse_unit(bytes.last<kPaxUnitBytes>());
    const auto body = bytes.subspan(kPaxUnitBytes, bytes.size() - 2 * kPaxUnitBytes);
    StampFields stamp;
    MemberFields fields;
    const auto taken =
        take_records({reinterpret_cast<const char*>(body.data()), body.size()}, stamp, fields);
    if (!taken) return std::unexpected(taken.error());
    auto header = make_header(stamp, fields);
    if (!header) return header;
    const bool agrees = unit && unit->type == '0' && unit->name == header->path;
    if (!agrees) return corrupt("the ustar header of a member");
    const std::uint64_t size = header->member.size_bytes;
    if (unit->size_bytes != (size <= kOctalMax ? size : 0)) {
        return corrupt("the size in a ustar header");
    }
    return header;
}

std::vector<std::byte> encode_checksums_header(const MemberHeader& header) {
    std::vector<std::byte> bytes(kPaxUnitBytes);
    encode_unit(UnitSpan(bytes.data(), kPaxUnitBytes),
                {.name = checksums_path(header.path),
                 .size_bytes = checksum_list_bytes(header.member),
                 .mode = 0644,
                 .seconds = header.member.changed_ns / kNanoseconds});
    return bytes;
}

Result<void> check_checksums_header(std::span<const std::byte, kPaxUnitBytes> bytes,
                                    const MemberHeader& header) {
    const auto unit = parse_unit(bytes);
    const bool agrees = unit && unit->type == '0' && unit->name == checksums_path(header.path);
    if (!agrees) return corrupt("the header of a list of checksums");
    if (unit->size_bytes != checksum_list_bytes(header.member)) {
        return corrupt("the size of a list of checksums");
    }
    return {};
}

}  // namespace fopd::store
