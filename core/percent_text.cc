#include "core/percent_text.h"

namespace fopd::core {

namespace {

constexpr std::string_view kLowerHex = "0123456789abcdef";

bool is_plain(char c) {
    return c > ' ' && c < '\x7f' && c != '%';
}

}  // namespace

std::string percent_encoded(std::string_view text) {
    std::string word;
    for (const char c : text) {
        if (is_plain(c)) {
            word += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        word += {'%', kLowerHex[byte >> 4U], kLowerHex[byte & 0xfU]};
    }
    return word;
}

std::optional<std::string> percent_decoded(std::string_view word) {
    std::string text;
    while (!word.empty()) {
        std::size_t taken = 1;
        if (word.front() == '%') {
            taken = 3;
            if (word.size() < taken) return std::nullopt;
            const std::size_t high = kLowerHex.find(word[1]);
            const std::size_t low = kLowerHex.find(word[2]);
            if (high == kLowerHex.npos || low == kLowerHex.npos) return std::nullopt;
            text += static_cast<char>(high << 4U | low);
        } else {
            if (!is_plain(word.front())) return std::nullopt;
            text += word.front();
        }
        word.remove_prefix(taken);
    }
    return text;
}

}  // namespace fopd::core
