#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fopd::core {

// The character at the start of `text`, and its length in bytes.
struct DecodedCharacter {
    char32_t code_point;
    std::size_t size_bytes;
};

// Nothing if `text` is empty or does not start with well-formed UTF-8: overlong forms, surrogates
// and values above U+10FFFF are refused.
std::optional<DecodedCharacter> decode_utf8(std::string_view text);

bool is_utf8(std::string_view text);

// C0 and C1 controls, line and paragraph separators, byte order marks, and characters that change
// the direction of text: never valid in a configuration or a log, and harmful on a terminal.
bool is_control(char32_t code_point);

// REQUIRES: is_utf8(text).
bool has_control(std::string_view text);

// Appends the character as JSON escapes it: \uXXXX. REQUIRES: code_point < 0x10000.
void append_json_escape(std::string& out, char32_t code_point);

// The number of characters. REQUIRES: is_utf8(text).
std::size_t count_characters(std::string_view text);

}  // namespace fopd::core
