#include "core/printable.h"

#include <cstdint>

#include "core/ensure.h"

namespace fopd::core {

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::uint32_t byte_at(std::string_view text, std::size_t index) {
    return static_cast<unsigned char>(text[index]);
}

// Requires: the character is valid and `length` bytes long.
std::uint32_t code_point(std::string_view text, std::size_t length) {
    if (length == 1) return byte_at(text, 0);
    std::uint32_t value = byte_at(text, 0) & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) value = value << 6 | (byte_at(text, i) & 0x3fU);
    return value;
}

bool is_safe(std::uint32_t c) {
    if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return false;        // C0, DEL, C1.
    if (c == 0x061c || c == 0x200e || c == 0x200f) return false;  // Direction marks.
    if (c >= 0x2028 && c <= 0x202e) return false;  // Line separators, embeddings and overrides.
    if (c >= 0x2066 && c <= 0x2069) return false;  // Isolates.
    return c != 0xfeff;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
    ENSURE(!text.empty());
    const std::uint32_t lead = byte_at(text, 0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead < 0xc2   ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte_at(text, i) & 0xc0U) != 0x80) return 0;
    }
    const std::uint32_t c = code_point(text, length);
    if (length == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) return 0;
    if (length == 4 && (c < 0x10000 || c > 0x10ffff)) return 0;
    return length;
}

void append_printable(std::string& out, std::string_view text, Quotes quotes) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const std::size_t taken = length == 0 ? 1 : length;
        const char first = text.front();
        if (quotes == Quotes::kEscape && (first == '"' || first == '\\')) {
            out += '\\';
            out += first;
        } else if (length != 0 && is_safe(code_point(text, length))) {
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

}  // namespace fopd::core
