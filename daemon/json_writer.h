#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fopd::daemon {

// Writes one JSON value incrementally. The caller balances begin and end.
class JsonWriter {
public:
    JsonWriter& begin_object() { return open('{'); }
    JsonWriter& end_object() { return shut('}'); }
    JsonWriter& begin_array() { return open('['); }
    JsonWriter& end_array() { return shut(']'); }

    JsonWriter& key(std::string_view name);
    JsonWriter& value(std::string_view text);
    JsonWriter& value(const char* text) { return value(std::string_view(text)); }
    JsonWriter& value(bool truth);
    JsonWriter& value(double number);  // null for NaN and infinity.
    JsonWriter& null() { return raw("null"); }
    template <std::integral T>
    JsonWriter& value(T number) {
        return raw(std::to_string(number));
    }
    template <typename T>
    JsonWriter& field(std::string_view name, const T& content) {
        key(name);
        return value(content);
    }
    // null if there is no content, or no text.
    template <typename T>
    JsonWriter& field_or_null(std::string_view name, const std::optional<T>& content) {
        key(name);
        return content ? value(*content) : null();
    }
    JsonWriter& text_or_null(std::string_view name, std::string_view text) {
        key(name);
        return text.empty() ? null() : value(text);
    }
    JsonWriter& list(std::string_view name, std::span<const std::string> texts);
    // `write` writes each of the items.
    template <typename Items, typename Write>
    JsonWriter& array(std::string_view name, const Items& items, Write write) {
        key(name).begin_array();
        for (const auto& each : items) write(*this, each);
        return end_array();
    }

    const std::string& text() const { return text_; }

private:
    JsonWriter& open(char bracket);
    JsonWriter& shut(char bracket);
    JsonWriter& raw(std::string_view text);
    void separate();

    std::string text_;
    bool first_ = true;  // The next element is the first of its level.
    bool after_key_ = false;
};

// Appends `text` in double quotes. Invalid UTF-8 becomes U+FFFD; control characters are escaped, so
// that the result can be written to a line of a log.
void append_json_string(std::string& out, std::string_view text);

}  // namespace fopd::daemon
