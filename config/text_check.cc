#include "config/text_check.h"

#include <array>

#include "core/utf8.h"

namespace fopd::config {
namespace {

struct Kind {
    const char* wrong;
    const char* right;
};

// The faults of a position in the text, in the order of kKinds.
enum Fault : std::uint8_t {
    kNotUtf8,
    kNul,
    kTab,
    kReturn,
    kByteOrder,
    kControl,
    kDirective,
    kCount
};
constexpr std::array<Kind, kCount> kKinds{{
    {"not UTF-8", "save the file as UTF-8"},
    {"a NUL byte", "write plain text"},
    {"a tab", "indent and separate with spaces"},
    {"a carriage return without a newline", "end lines with a newline"},
    {"a byte order mark", "save the file as UTF-8 without one"},
    {"a control or invisible character", "write it as an escape in double quotes or leave it out"},
    {"a YAML directive", "leave out lines that start with %"},
}};

std::optional<Fault> fault_at(std::string_view rest, const core::DecodedCharacter& character,
                              std::uint32_t column) {
    const char32_t c = character.code_point;
    if (c == '\n') return std::nullopt;
    if (c == '\r') {
        if (rest.starts_with("\r\n")) return std::nullopt;
        return kReturn;
    }
    if (c == 0) return kNul;
    if (c == '\t') return kTab;
    if (c == 0xfeff) return kByteOrder;
    if (core::is_control(c)) return kControl;
    if (c == '%' && column == 1) return kDirective;
    return std::nullopt;
}

}  // namespace

bool check_text(std::string_view text, Problems& problems) {
    if (text.size() > kFileSizeMax) {
        problems.push_back({"", {}, "file", "larger than 1MiB", "a configuration is a few KiB"});
        return false;
    }
    std::array<bool, kCount> seen{};
    Position position;
    const auto report = [&](Fault fault) {
        if (seen[fault]) return;
        seen[fault] = true;
        problems.push_back({"", position, "yaml", kKinds[fault].wrong, kKinds[fault].right});
    };
    std::string_view rest = text;
    while (!rest.empty()) {
        const auto character = core::decode_utf8(rest);
        if (!character) {
            // After invalid UTF-8, the rest cannot be interpreted.
            report(kNotUtf8);
            return false;
        }
        const auto fault = fault_at(rest, *character, position.column);
        if (fault) report(*fault);
        rest.remove_prefix(character->size_bytes);
        ++position.column;
        if (character->code_point == '\n') position = {position.line + 1, 1};
    }
    return seen == std::array<bool, kCount>{};
}

}  // namespace fopd::config
