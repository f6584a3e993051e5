// SPDX-License-Identifier: BSD-2-Clause
#include "client/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string_view>

#include <nlohmann/json.hpp>

#include "config/units.h"
#include "core/ensure.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace fopd::client {

namespace {

// Standard output is one for the program, and so is this.
bool& tables_are_wide() {
    static bool are_wide = false;
    return are_wide;
}

constexpr std::size_t kColumnLeast = 8;
constexpr std::size_t kNeverCut = std::numeric_limits<std::size_t>::max();

// Makes the widest columns narrower until a line fits, or each has its least width.
void fit(std::vector<std::size_t>& widths, const std::vector<std::size_t>& least,
         std::size_t width_max) {
    std::size_t total = 2 * widths.size() - 2;
    for (const std::size_t width : widths) total += width;
    for (; total > width_max; --total) {
        std::size_t widest = widths.size();
        for (std::size_t i = 0; i < widths.size(); ++i) {
            const bool is_wider = widest == widths.size() || widths[i] > widths[widest];
            if (widths[i] > least[i] && is_wider) widest = i;
        }
        if (widest == widths.size()) return;
        --widths[widest];
    }
}

// The number of characters, without escape sequences for colours. Nearly all printed characters are
// one column wide.
std::size_t width_of(const std::string& text) {
    std::size_t width = 0;
    bool is_colour = false;
    for (const char c : text) {
        if (c == '\x1b') is_colour = true;
        const bool begins = (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
        if (!is_colour && begins) ++width;
        if (c == 'm') is_colour = false;
    }
    return width;
}

// Names come from servers. The library escapes the control characters below a blank only, but a
// terminal obeys others, too, and some change the direction in which text is shown. They can only
// be in texts, where an escape stands for the same character.
// REQUIRES: core::is_utf8(json).
std::string without_controls(std::string_view json) {
    std::string safe;
    while (!json.empty()) {
        const auto character = core::decode_utf8(json);
        ENSURE(character.has_value());
        if (core::is_control(character->code_point)) {
            core::append_json_escape(safe, character->code_point);
        } else {
            safe += json.substr(0, character->size_bytes);
        }
        json.remove_prefix(character->size_bytes);
    }
    return safe;
}

bool is_number(const std::string& text) {
    return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

// A column of numbers may also have "-", for an unknown number.
bool is_column_of_numbers(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
    return std::any_of(rows.begin() + 1, rows.end(), [column](const auto& row) {
        return column < row.size() && is_number(row[column]);
    });
}

}  // namespace

std::string dumped(const nlohmann::ordered_json& value) {
    return without_controls(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string shown(const nlohmann::json& value) {
    if (value.is_null()) return "-";
    std::string text;
    if (value.is_array()) {
        for (const auto& one : value) {
            if (!text.empty()) text += ", ";
            text += shown(one);
        }
        return text;
    }
    core::append_printable(text, value.is_string() ? value.get<std::string>() : dumped(value));
    return text;
}

std::string size_shown(const nlohmann::json& bytes) {
    return bytes.is_null() ? "-" : size_of(bytes.get<std::uint64_t>());
}

std::string span_shown(const nlohmann::json& seconds) {
    return span_of(seconds.get<double>());
}

std::string latency_shown(const nlohmann::json& seconds) {
    return latency_of(seconds.get<double>());
}

std::string setting_text(const nlohmann::json& setting) {
    const nlohmann::json& value = setting.at("value");
    const std::string unit = shown(setting.at("unit"));
    if (value.is_null()) return "none";
    if (unit == "seconds") {
        return config::format_duration(Duration(std::llround(value.get<double>() * 1e9)));
    }
    if (unit == "bytes") return config::format_size(value.get<std::uint64_t>());
    if (unit == "per second" || unit == "bytes per second") {
        const auto amount_unit =
            unit == "per second" ? config::Rate::Unit::kOperations : config::Rate::Unit::kBytes;
        return config::format_rate({.per_second = value.get<std::uint64_t>(), .unit = amount_unit});
    }
    return shown(value);
}

std::string fixed(double number, int digits) {
    if (!std::isfinite(number)) return "-";
    std::array<char, 400> text{};
    const int size = std::snprintf(text.data(), text.size(), "%.*f", digits, number);
    return {text.data(), static_cast<std::size_t>(size)};
}

std::string size_of(std::uint64_t bytes) {
    static constexpr std::array kUnits{" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    if (bytes < 1024) return std::to_string(bytes) + kUnits[0];
    auto size = static_cast<double>(bytes);
    std::size_t unit = 0;
    // 1023.95 would be rounded to 1024.0: it is 1.0 of the next unit.
    while (size >= 1023.95) {
        size /= 1024;
        ++unit;
    }
    return fixed(size, 1) + kUnits[unit];
}

std::string span_of(double seconds) {
    if (!(seconds >= 0) || seconds > 1e12) return "-";
    if (seconds < 60) return fixed(seconds, 1) + "s";
    const auto whole = static_cast<std::uint64_t>(seconds);
    const auto both = [](std::uint64_t large, const char* large_unit, std::uint64_t small,
                         const char* small_unit) {
        return std::to_string(large) + large_unit + " " + std::to_string(small) + small_unit;
    };
    if (whole < 3600) return both(whole / 60, "m", whole % 60, "s");
    if (whole < 86400) return both(whole / 3600, "h", whole / 60 % 60, "m");
    return both(whole / 86400, "d", whole / 3600 % 24, "h");
}

std::string latency_of(double seconds) {
    if (seconds >= 0 && seconds < 999.5e-6) return fixed(seconds * 1e6, 0) + "us";
    if (seconds >= 0 && seconds < 0.99995) return fixed(seconds * 1e3, 1) + "ms";
    return span_of(seconds);
}

std::string clipped(const std::string& text, std::size_t columns_max) {
    if (width_of(text) <= columns_max) return text;
    std::string cut;
    std::size_t columns = 0;
    for (const char c : text) {
        const bool begins = (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
        if (begins && ++columns >= columns_max) break;
        cut += c;
    }
    return columns_max == 0 ? cut : cut + "…";
}

std::string folded(std::string_view text, std::size_t indent) {
    std::string lines;
    std::string line;
    bool is_first_word = true;  // The next word is the first one of its line.
    while (!text.empty()) {
        // A word with the blanks before it.
        const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        const std::string_view word = text.substr(0, end);
        if (!is_first_word && width_of(line) + width_of(std::string(word)) > kPageWidth) {
            lines += line + "\n";
            line = std::string(indent, ' ') + std::string(word.substr(begin));
        } else {
            line += word;
        }
        is_first_word = false;
        text.remove_prefix(end);
    }
    return lines + line + "\n";
}

void choose_table_width(TableWidth width) {
    tables_are_wide() = width == TableWidth::kWhole;
}

bool are_tables_wide() {
    return tables_are_wide();
}

std::string table(const std::vector<std::vector<std::string>>& rows, const Cuts& cuts,
                  std::size_t width_max) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width_of(row[i]));
    }
    std::vector<bool> are_right;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        are_right.push_back(is_column_of_numbers(rows, i));
    }
    std::vector<std::size_t> least(widths.size(), kColumnLeast);
    // The first column has names, and may be cut even if the names look like numbers.
    for (std::size_t i = 1; i < widths.size(); ++i) {
        if (are_right[i]) least[i] = kNeverCut;
    }
    for (const std::size_t i : cuts.texts) least[i] = kTextLeast;
    for (const std::size_t i : cuts.whole) least[i] = kNeverCut;
    for (const std::size_t i : cuts.late) least[i] = kNeverCut;
    if (!are_tables_wide()) {
        fit(widths, least, width_max);
        for (const std::size_t i : cuts.late) least[i] = kColumnLeast;
        fit(widths, least, width_max);
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string cell = clipped(row[i], widths[i]);
            const std::string padding(widths[i] - width_of(cell), ' ');
            if (i > 0) line += "  ";
            line += are_right[i] ? padding + cell : cell + padding;
        }
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
}

std::string table(const nlohmann::json& list, std::initializer_list<Column> columns) {
    std::vector<std::vector<std::string>> rows(1);
    Cuts cuts;
    const auto is_left_out = [](const Column& each) {
        return each.kind == Column::Kind::kWide && !are_tables_wide();
    };
    for (const Column& each : columns) {
        if (is_left_out(each)) continue;
        const std::size_t index = rows.front().size();
        switch (each.kind) {
            case Column::Kind::kUsual: break;
            case Column::Kind::kLate: cuts.late.push_back(index); break;
            case Column::Kind::kText: cuts.texts.push_back(index); break;
            case Column::Kind::kWhole:
            case Column::Kind::kWide: cuts.whole.push_back(index); break;
        }
        rows.front().emplace_back(each.title);
    }
    for (const nlohmann::json& at : list) {
        std::vector<std::string>& row = rows.emplace_back();
        for (const Column& each : columns) {
            if (is_left_out(each)) continue;
            const std::string path = each.path;
            const nlohmann::json::json_pointer pointer(path.empty() ? path : "/" + path);
            row.push_back(each.text(at.at(pointer)));
        }
    }
    return table(rows, cuts);
}

}  // namespace fopd::client
