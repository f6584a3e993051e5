#include "daemon/log_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/ensure.h"
#include "core/printable.h"
#include "daemon/json_writer.h"

namespace fopd::daemon {

namespace {

struct LevelEntry {
    core::Level level;
    std::string_view name;
    char journal_priority;  // The number in syslog(3).
};
constexpr std::array kLevels{
    LevelEntry{core::Level::kTrace, "trace", '7'}, LevelEntry{core::Level::kDebug, "debug", '7'},
    LevelEntry{core::Level::kInfo, "info", '6'},   LevelEntry{core::Level::kWarn, "warn", '4'},
    LevelEntry{core::Level::kError, "error", '3'},
};
static_assert(std::ranges::is_sorted(kLevels, {}, &LevelEntry::level));

const LevelEntry& entry_of(core::Level level) {
    const auto index = static_cast<std::size_t>(level);
    ENSURE(index < kLevels.size());
    return kLevels[index];
}

void append_padded(std::string& out, std::uint64_t number, std::size_t width) {
    const std::string digits = std::to_string(number);
    if (digits.size() < width) out.append(width - digits.size(), '0');
    out += digits;
}

// RFC 3339 in UTC, with microseconds.
void append_time(std::string& out, WallTime time) {
    namespace chrono = std::chrono;
    const chrono::sys_time<chrono::nanoseconds> point{chrono::nanoseconds{time.unix_ns}};
    const auto day = chrono::floor<chrono::days>(point);
    const chrono::year_month_day date{day};
    const chrono::hh_mm_ss clock{chrono::floor<chrono::microseconds>(point - day)};
    append_padded(out, static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
    out += '-';
    append_padded(out, static_cast<unsigned>(date.month()), 2);
    out += '-';
    append_padded(out, static_cast<unsigned>(date.day()), 2);
    out += 'T';
    append_padded(out, static_cast<std::uint64_t>(clock.hours().count()), 2);
    out += ':';
    append_padded(out, static_cast<std::uint64_t>(clock.minutes().count()), 2);
    out += ':';
    append_padded(out, static_cast<std::uint64_t>(clock.seconds().count()), 2);
    out += '.';
    append_padded(out, static_cast<std::uint64_t>(clock.subseconds().count()), 6);
    out += 'Z';
}

template <typename Number>
void append_number(std::string& out, Number number) {
    std::array<char, 32> text{};
    const auto written = std::to_chars(text.data(), text.data() + text.size(), number);
    ENSURE(written.ec == std::errc());
    out.append(text.data(), written.ptr);
}

// Calls `text` for a string; appends other values, which look the same in every format.
template <typename Text>
void append_value(std::string& out, const core::Field& field, Text&& text) {
    std::visit(
        [&](const auto& value) {
            using Value = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, std::string_view>) {
                text(value);
            } else if constexpr (std::is_same_v<Value, bool>) {
                out += value ? "true" : "false";
            } else {
                append_number(out, value);
            }
        },
        field.value);
}

void append_text_value(std::string& out, std::string_view value) {
    const std::size_t start = out.size();
    core::append_printable(out, value, core::Quotes::kEscape);
    const bool is_plain = !value.empty() && std::string_view(out).substr(start) == value &&
                          value.find_first_of(" =") == std::string_view::npos;
    if (is_plain) return;
    out.insert(start, 1, '"');
    out += '"';
}

// "fopd.area.event key=value …"
void append_message(std::string& out, const LogEvent& event) {
    out += "fopd.";
    core::append_printable(out, event.name);
    for (const core::Field& field : event.fields) {
        out += ' ';
        core::append_printable(out, field.key);
        out += '=';
        append_value(out, field, [&](std::string_view value) { append_text_value(out, value); });
    }
}

void append_json_value(std::string& out, const core::Field& field) {
    const auto* const number = std::get_if<double>(&field.value);
    if (number != nullptr && !std::isfinite(*number)) {
        out += "null";
        return;
    }
    append_value(out, field, [&](std::string_view value) { append_json_string(out, value); });
}

constexpr std::array<std::string_view, 3> kJsonKeys{"time", "level", "event"};

// Journal field names consist of A-Z, 0-9 and _, at most 64 characters.
std::string journal_name(std::string_view key) {
    constexpr std::size_t kNameMax = 64;
    std::string name = "FOPD_";
    for (const char c : key.substr(0, kNameMax - name.size() - 1)) {
        const bool is_lower = c >= 'a' && c <= 'z';
        const bool is_allowed = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        name += is_lower ? static_cast<char>(c - 'a' + 'A') : is_allowed ? c : '_';
    }
    if (name == "FOPD_EVENT") name += '_';
    return name;
}

// A packed entry is a sequence of {size, bytes}.
using PackedSize = std::uint32_t;

void pack(std::string& packed, std::string_view field) {
    const auto size = static_cast<PackedSize>(field.size());
    std::array<char, sizeof(size)> header{};
    std::memcpy(header.data(), &size, sizeof(size));
    packed.append(header.data(), header.size());
    packed += field;
}

}  // namespace

std::string_view level_name(core::Level level) {
    return entry_of(level).name;
}

std::optional<core::Level> level_named(std::string_view name) {
    const auto entry = std::ranges::find(kLevels, name, &LevelEntry::name);
    if (entry == kLevels.end()) return std::nullopt;
    return entry->level;
}

std::string format_text(const LogEvent& event) {
    std::string line;
    append_time(line, event.time);
    line += ' ';
    line += level_name(event.level);
    line += ' ';
    append_message(line, event);
    line += '\n';
    return line;
}

std::string format_json(const LogEvent& event) {
    std::string line = R"({"time":")";
    append_time(line, event.time);
    line += R"(","level":")";
    line += level_name(event.level);
    line += R"(","event":)";
    append_json_string(line, "fopd." + std::string(event.name));
    for (const core::Field& field : event.fields) {
        std::string key(field.key);
        if (std::ranges::find(kJsonKeys, field.key) != kJsonKeys.end()) key += '_';
        line += ',';
        append_json_string(line, key);
        line += ':';
        append_json_value(line, field);
    }
    line += "}\n";
    return line;
}

std::string format_journal(const LogEvent& event) {
    std::string message = "MESSAGE=";
    append_message(message, event);
    std::string packed;
    pack(packed, message);
    pack(packed, std::string("PRIORITY=") + entry_of(event.level).journal_priority);
    pack(packed, "SYSLOG_IDENTIFIER=fopd");
    pack(packed, "FOPD_EVENT=fopd." + std::string(event.name));
    for (const core::Field& field : event.fields) {
        std::string entry = journal_name(field.key) + "=";
        append_value(entry, field, [&](std::string_view value) { entry += value; });
        pack(packed, entry);
    }
    return packed;
}

std::string_view next_journal_field(std::string_view& packed) {
    PackedSize size = 0;
    ENSURE(packed.size() >= sizeof(size));
    std::memcpy(&size, packed.data(), sizeof(size));
    packed.remove_prefix(sizeof(size));
    ENSURE(packed.size() >= size);
    const std::string_view field = packed.substr(0, size);
    packed.remove_prefix(size);
    return field;
}

}  // namespace fopd::daemon
