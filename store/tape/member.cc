#include "store/tape/member.h"

#include <algorithm>
#include <array>

#include "core/utf8.h"
#include "core/whole_number.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

enum MemberField : std::uint8_t {
    kFid,
    kVersion,
    kOffset,
    kSize,
    kObjectSize,
    kChecksum,
    kCreated,
    kChanged,
    kMode,
    kNameVersion,
    kName,
    kPool,
    kOwner,
    kGroup,
    kCollection,
    kMemberFieldCount,
};

constexpr std::array<std::string_view, kMemberFieldCount> kMemberFieldNames{
    "fid",  "version",      "offset", "size", "object_size", "checksum", "created",    "changed",
    "mode", "name_version", "name",   "pool", "owner",       "group",    "collection",
};

bool is_plain_text(std::string_view text, std::size_t bytes_max) {
    return text.size() <= bytes_max && core::is_utf8(text) && !core::has_control(text);
}

// A signed number, in the one form that is written.
std::optional<std::int64_t> parse_signed(std::string_view text) {
    const auto number = core::whole_number<std::int64_t>(text);
    if (!number || std::to_string(*number) != text) return std::nullopt;
    return number;
}

template <typename T>
bool take_value(const std::optional<T>& from, T& into) {
    if (!from) return false;
    into = *from;
    return true;
}

bool set_field(Member& member, MemberField field, std::string_view text) {
    switch (field) {
        case kFid: {
            if (text.size() != 32) return false;
            const auto high = parse_hex(text.substr(0, 16), 16);
            const auto low = parse_hex(text.substr(16), 16);
            return take_value(high, member.fid.high) && take_value(low, member.fid.low);
        }
        case kVersion: return take_value(parse_decimal(text), member.version);
        case kOffset: return take_value(parse_decimal(text), member.offset);
        case kSize: return take_value(parse_decimal(text), member.size_bytes);
        case kObjectSize: return take_value(parse_decimal(text), member.object_bytes);
        case kChecksum: {
            const auto checksum = parse_hex(text, 8);
            member.checksum = static_cast<std::uint32_t>(checksum.value_or(0));
            return checksum.has_value();
        }
        case kCreated: return take_value(parse_signed(text), member.created_ns);
        case kChanged: return take_value(parse_signed(text), member.changed_ns);
        case kMode: {
            const auto mode = core::whole_number<std::uint16_t>(text, 8);
            return text.size() == 3 && take_value(mode, member.mode);
        }
        case kNameVersion: return take_value(parse_decimal(text), member.name_version);
        case kName: member.name = text; return true;
        case kPool: member.pool = text; return true;
        case kOwner: member.owner = text; return true;
        case kGroup: member.group = text; return true;
        case kCollection: member.collection = text; return true;
        case kMemberFieldCount: break;
    }
    return false;
}

}  // namespace

bool is_valid(const Member& member) {
    if (member.object_bytes > kMemberBytesMax || member.offset > member.object_bytes) return false;
    if (member.size_bytes > member.object_bytes - member.offset) return false;
    if (member.size_bytes > kMemberPieceBytesMax) return false;
    if (member.offset % kMemberBlockBytes != 0 || member.mode > 0777) return false;
    for (const std::string* word :
         {&member.pool, &member.owner, &member.group, &member.collection}) {
        if (!is_plain_text(*word, kMemberWordBytesMax)) return false;
    }
    return is_plain_text(member.name, kMemberNameBytesMax);
}

std::vector<TapeField> member_fields(const Member& member) {
    const std::string mode{static_cast<char>('0' + member.mode / 64 % 8),
                           static_cast<char>('0' + member.mode / 8 % 8),
                           static_cast<char>('0' + member.mode % 8)};
    const auto name = [](MemberField field) { return kMemberFieldNames.at(field); };
    return {
        {name(kFid), hex_text(member.fid.high, 16) + hex_text(member.fid.low, 16)},
        {name(kVersion), std::to_string(member.version)},
        {name(kOffset), std::to_string(member.offset)},
        {name(kSize), std::to_string(member.size_bytes)},
        {name(kObjectSize), std::to_string(member.object_bytes)},
        {name(kChecksum), hex_text(member.checksum, 8)},
        {name(kCreated), std::to_string(member.created_ns)},
        {name(kChanged), std::to_string(member.changed_ns)},
        {name(kMode), mode},
        {name(kNameVersion), std::to_string(member.name_version)},
        {name(kName), member.name},
        {name(kPool), member.pool},
        {name(kOwner), member.owner},
        {name(kGroup), member.group},
        {name(kCollection), member.collection},
    };
}

Result<bool> MemberFields::set(std::string_view name, std::string_view text) {
    const auto found = std::ranges::find(kMemberFieldNames, name);
    if (found == kMemberFieldNames.end()) return false;
    const auto field = static_cast<MemberField>(found - kMemberFieldNames.begin());
    if ((seen_ >> field & 1) != 0) return corrupt("a field comes twice");
    if (!set_field(member_, field, text)) return corrupt("a field of a member");
    seen_ |= 1U << field;
    return true;
}

Result<Member> MemberFields::finish() const {
    if (seen_ != (1U << kMemberFieldCount) - 1) return corrupt("a member without all its fields");
    if (!is_valid(member_)) return corrupt("the fields of a member");
    return member_;
}

std::string hex_text(std::uint64_t number, std::size_t digits) {
    std::string text(digits, '0');
    for (std::size_t i = digits; i > 0; --i, number /= 16) {
        text[i - 1] = "0123456789abcdef"[number % 16];
    }
    return text;
}

std::optional<std::uint64_t> parse_hex(std::string_view text, std::size_t digits) {
    if (text.size() != digits) return std::nullopt;
    if (std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'Z'; })) return std::nullopt;
    return core::whole_number(text, 16);
}

std::optional<devices::NodeId> parse_node(std::string_view text) {
    const auto node = devices::parse_id(text);
    // In the one form that is written.
    if (!node || devices::format_id(*node) != text) return std::nullopt;
    return node;
}

std::string index_position_text(const IndexPosition& position) {
    return std::to_string(position.file) + ":" + std::to_string(position.block);
}

std::optional<IndexPosition> parse_index_position(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto file = parse_decimal(text.substr(0, colon));
    const auto block = parse_decimal(text.substr(colon + 1));
    if (!file || !block || (*file == 0 && *block != 0)) return std::nullopt;
    return IndexPosition{.file = *file, .block = *block};
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
    if (text.size() > 1 && text.front() == '0') return std::nullopt;
    return core::whole_number(text);
}

}  // namespace fopd::store
