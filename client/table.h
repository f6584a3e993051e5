// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace fopd::client {

// JSON in one line, safe for a terminal but for the direction of text. Bytes that are not UTF-8 are
// replaced.
std::string dumped(const nlohmann::ordered_json& value);

// A value for people, safe for a terminal: text without quotes, lists with commas, null as "-".
std::string shown(const nlohmann::json& value);
// A number of bytes, and a number of seconds.
std::string size_shown(const nlohmann::json& bytes);
std::string span_shown(const nlohmann::json& seconds);
std::string latency_shown(const nlohmann::json& seconds);

// The value of a setting, {"value":…, "unit":…}, as the configuration has it.
std::string setting_text(const nlohmann::json& setting);

// A number with `digits` decimal places.
std::string fixed(double number, int digits);

// "8.0 GiB", "512 B".
std::string size_of(std::uint64_t bytes);

// "3d 4h", "2h 5m", "1m 7s", "3.2s".
std::string span_of(double seconds);

// A short time: "602us", "12.3ms"; from a second on as span_of().
std::string latency_of(double seconds);

// The text, cut to at most so many columns; where something is left out, it ends with "…".
std::string clipped(const std::string& text, std::size_t columns_max);

// The text in lines of at most kPageWidth columns, each with a line end. It is broken at blanks
// only; all lines but the first begin with `indent` blanks.
std::string folded(std::string_view text, std::size_t indent);

// The width of tables and folded text.
inline constexpr std::size_t kPageWidth = 80;

// Tables have all columns, and are as wide as these need, or they fit into kPageWidth, as without
// this call: some columns are left out, and long texts are cut.
enum class TableWidth : unsigned char { kPage, kWhole };
void choose_table_width(TableWidth width);
bool are_tables_wide();

// Lines of aligned columns with two blanks between; numbers are aligned to the right. To make the
// table fit, the widest columns are cut, but for numbers behind the first column, and the columns
// that are in `whole`. Those in `late` are cut after all others, and those with long texts not
// below kTextLeast.
struct Cuts {
    std::vector<std::size_t> whole{};
    std::vector<std::size_t> late{};
    std::vector<std::size_t> texts{};
};
inline constexpr std::size_t kTextLeast = 22;
std::string table(const std::vector<std::vector<std::string>>& rows, const Cuts& cuts = {},
                  std::size_t width_max = kPageWidth);

// A column of a table of JSON objects.
struct Column {
    const char* title;
    // The path of the value within the object, such as "scrub/state"; empty: the object itself.
    const char* path;
    std::string (*text)(const nlohmann::json& value) = &shown;
    enum class Kind : std::uint8_t {
        kUsual,
        kWhole,  // Never cut, because people copy or compare it.
        kLate,   // Cut after all others.
        kText,   // Long texts.
        kWide,   // Whole, and left out where the table is to fit.
    };
    Kind kind = Kind::kUsual;
};
std::string table(const nlohmann::json& list, std::initializer_list<Column> columns);

}  // namespace fopd::client
