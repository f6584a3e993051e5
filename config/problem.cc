#include "config/problem.h"

#include <algorithm>

#include "core/utf8.h"

namespace fopd::config {
namespace {

constexpr std::size_t kShownBytesMax = 60;

void append_hex(std::string& out, std::uint32_t value, int digits) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[value >> shift & 15U];
}

}  // namespace

std::string to_string(const Problem& problem) {
    std::string text = problem.file;
    text.append(":").append(std::to_string(problem.position.line));
    text.append(":").append(std::to_string(problem.position.column));
    text.append(": ").append(problem.key);
    text.append(": ").append(problem.wrong);
    text.append(", ").append(problem.right);
    return text;
}

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    while (!text.empty() && out.size() <= kShownBytesMax) {
        const auto character = core::decode_utf8(text);
        const std::size_t size = character ? character->size_bytes : 1;
        if (!character || (core::is_control(character->code_point) && size == 1)) {
            out += "\\x";
            append_hex(out, static_cast<unsigned char>(text[0]), 2);
        } else if (core::is_control(character->code_point)) {
            out += "\\u";
            append_hex(out, character->code_point, 4);
        } else {
            if (text[0] == '"' || text[0] == '\\') out += '\\';
            out.append(text.substr(0, size));
        }
        text.remove_prefix(size);
    }
    out += text.empty() ? "\"" : "...\"";
    return out;
}

std::string shown_key(std::string_view key) {
    const bool is_word = !key.empty() && key.size() <= kShownBytesMax &&
                         std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; });
    return is_word ? std::string(key) : in_quotes(key);
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        if (!text.empty()) text += ", ";
        text += word;
    }
    return text;
}

}  // namespace fopd::config
