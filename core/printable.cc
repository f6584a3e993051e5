#include "core/printable.h"

#include <cstdint>

#include "core/utf8.h"

namespace fopd::core {

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::uint32_t byte_at(std::string_view text, std::size_t index) {
    return static_cast<unsigned char>(text[index]);
}

}  // namespace

void append_printable(std::string& out, std::string_view text, Quotes quotes) {
    while (!text.empty()) {
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
