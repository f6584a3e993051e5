#include "core/utf8.h"

#include <cstdint>

#include "core/ensure.h"

namespace fopd::core {

std::optional<DecodedCharacter> decode_utf8(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const auto byte = [text](std::size_t index) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[index]));
    };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return DecodedCharacter{first, 1};

    // The first byte determines the length, and the smallest value that needs this length.
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return std::nullopt;
    std::uint32_t code_point = first & (0xffU >> (length + 1));
    for (std::size_t index = 1; index < length; ++index) {
        if ((byte(index) & 0xc0U) != 0x80) return std::nullopt;
        code_point = code_point << 6 | (byte(index) & 0x3fU);
    }
    constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code_point < kSmallest[length] || code_point > 0x10ffff) return std::nullopt;
    if (code_point >= 0xd800 && code_point <= 0xdfff) return std::nullopt;
    return DecodedCharacter{code_point, length};
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto character = decode_utf8(text);
        if (!character) return false;
        text.remove_prefix(character->size_bytes);
    }
    return true;
}

bool is_control(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

bool has_control(std::string_view text) {
    while (!text.empty()) {
        const auto character = decode_utf8(text);
        ENSURE(character.has_value());
        if (is_control(character->code_point)) return true;
        text.remove_prefix(character->size_bytes);
    }
    return false;
}

void append_json_escape(std::string& out, char32_t code_point) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += "\\u";
    for (const unsigned shift : {12U, 8U, 4U, 0U}) out += kDigits[code_point >> shift & 0xfU];
}

std::size_t count_characters(std::string_view text) {
    std::size_t count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0U) != 0x80 ? 1 : 0;
    return count;
}

}  // namespace fopd::core
