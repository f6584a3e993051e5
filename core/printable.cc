#include "core/printable.h"

#include <algorithm>

#include "core/utf8.h"

namespace fopd::core {

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::uint32_t byte_at(std::string_view text, std::size_t index) {
    return static_cast<unsigned char>(text[index]);
}

// The number of leading characters that need no escape, even with Quotes::kEscape.
std::size_t count_plain(std::string_view text) {
    const auto is_plain = [](char each) {
        return each >= ' ' && each <= '~' && each != '"' && each != '\\';
    };
    return static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
}

}  // namespace

void append_printable(std::string& out, std::string_view text, Quotes quotes) {
    while (!text.empty()) {
        // Most text is plain, and is copied at once.
        const std::size_t plain = count_plain(text);
        out += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) return;
        const auto character = decode_utf8(text);
        const std::size_t taken = character ? character->size_bytes : 1;
        const char first = text.front();
        if (quotes == Quotes::kEscape && (first == '"' || first == '\\')) {
            out += '\\';
            out += first;
        } else if (character && !is_control(character->code_point)) {
            out += text.substr(0, taken);
        } else if (first == '\n' || first == '\r' || first == '\t') {
            out += first == '\n' ? "\\n" : first == '\r' ? "\\r" : "\\t";
        } else {
            for (std::size_t i = 0; i < taken; ++i) {
                out += "\\x";
                out += kHexDigits[byte_at(text, i) >> 4];
                out += kHexDigits[byte_at(text, i) & 0xf];
            }
        }
        text.remove_prefix(taken);
    }
}

std::string printable(std::string_view text) {
    std::string safe;
    append_printable(safe, text);
    return safe;
}

}  // namespace fopd::core
