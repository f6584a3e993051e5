#include "daemon/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

namespace fopd::daemon {

namespace {

// How many bytes the well-formed character at the start of `text` has; 0 when there is none.
std::size_t character_size(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto continues = [text, byte](std::size_t i) {
        return i < text.size() && (byte(i) & 0xc0U) == 0x80U;
    };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
    if (lead >= 0xe0 && lead <= 0xef) {
        if (!continues(1) || !continues(2)) return 0;
        if (lead == 0xe0 && byte(1) < 0xa0) return 0;  // Could be shorter.
        if (lead == 0xed && byte(1) > 0x9f) return 0;  // Half of a surrogate pair.
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (!continues(1) || !continues(2) || !continues(3)) return 0;
        if (lead == 0xf0 && byte(1) < 0x90) return 0;
        if (lead == 0xf4 && byte(1) > 0x8f) return 0;  // Above U+10FFFF.
        return 4;
    }
    return 0;
}

void append_escaped(std::string& out, unsigned char control) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    switch (control) {
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default: break;
    }
    out += "\\u00";
    out += kDigits[control >> 4U];
    out += kDigits[control & 0xfU];
}

}  // namespace

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const auto first = static_cast<unsigned char>(text.front());
        const std::size_t size = character_size(text);
        if (size == 0) {
            out += "\xef\xbf\xbd";
        } else if (first == '"' || first == '\\') {
            out += '\\';
            out += text.front();
        } else if (first < 0x20 || first == 0x7f) {
            append_escaped(out, first);
        } else {
            out += text.substr(0, size);
        }
        text.remove_prefix(size == 0 ? 1 : size);
    }
    out += '"';
    return out;
}

JsonWriter& JsonWriter::key(std::string_view name) {
    separate();
    text_ += json_quoted(name);
    text_ += ':';
    after_key_ = true;
    return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
    return raw(json_quoted(text));
}

JsonWriter& JsonWriter::value(bool truth) {
    return raw(truth ? "true" : "false");
}

JsonWriter& JsonWriter::value(double number) {
    if (!std::isfinite(number)) return raw("null");
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    return raw({digits.data(), static_cast<std::size_t>(end.ptr - digits.data())});
}

JsonWriter& JsonWriter::open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
}

JsonWriter& JsonWriter::shut(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
}

JsonWriter& JsonWriter::raw(std::string_view text) {
    separate();
    text_ += text;
    return *this;
}

void JsonWriter::separate() {
    if (!first_ && !after_key_) text_ += ',';
    first_ = false;
    after_key_ = false;
}

}  // namespace fopd::daemon
