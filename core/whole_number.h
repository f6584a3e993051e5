#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace fopd::core {

// Reads all of `text` as a number. Nothing if the text is empty, has a character other than a digit
// of the base, or is a number that does not fit. A signed number may begin with '-'. There is no
// "+" and no "0x"; digits above 9 are letters in upper or lower case.
template <std::integral Number = std::uint64_t>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
    Number number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, failed] = std::from_chars(text.data(), end, number, base);
    if (failed != std::errc() || stopped != end) return std::nullopt;
    return number;
}

// Reads all of `text` as a decimal number. False: `number` is unchanged.
template <std::integral Number>
bool read_number(std::string_view text, Number& number) {
    const auto read = whole_number<Number>(text);
    if (read) number = *read;
    return read.has_value();
}

}  // namespace fopd::core
