#include "daemon/json_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/utf8.h"

namespace fopd::daemon {

void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        const auto character = core::decode_utf8(text);
        const std::size_t length = character ? character->size_bytes : 0;
        const auto first = static_cast<unsigned char>(text[0]);
        if (length == 0) {
            out += "\\ufffd";
        } else if (first == '"' || first == '\\') {
            out += '\\';
            out += text[0];
        } else if (core::is_control(character->code_point)) {
            core::append_json_escape(out, character->code_point);
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    out += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
    separate();
    append_json_string(text_, name);
    text_ += ':';
    after_key_ = true;
    return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
    separate();
    append_json_string(text_, text);
    return *this;
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

JsonWriter& JsonWriter::list(std::string_view name, std::span<const std::string> texts) {
    key(name).begin_array();
    for (const std::string& each : texts) value(each);
    return end_array();
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
