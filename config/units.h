#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "config/problem.h"
#include "core/time.h"

namespace fopd::config {

// Numbers with units, one grammar for the configuration file and the command line: digits, directly
// followed by a unit, "250ms". No sign, fraction, space or leading zero. Overflow is a mistake,
// never a wrong number.

// ns us ms s min h d. The unit is mandatory.
std::expected<Duration, Mistake> parse_duration(std::string_view text);

// Bytes: none or B; k M G T P and KiB MiB GiB TiB PiB are powers of 1024, kB MB GB TB PB of 1000.
std::expected<std::uint64_t, Mistake> parse_size(std::string_view text);

// An amount per second: operations ("200/s") or bytes ("50MB/s", "4096B/s").
struct Rate {
    enum class Unit : std::uint8_t { kOperations, kBytes };

    std::uint64_t per_second = 0;
    Unit unit = Unit::kOperations;

    friend bool operator==(const Rate&, const Rate&) = default;
};
std::expected<Rate, Mistake> parse_rate(std::string_view text);

// The shortest form, by digits, that parses back to the same value; powers of 1024 are preferred
// over those of 1000. REQUIRES: span is not negative.
std::string format_duration(Duration span);
std::string format_size(std::uint64_t size_bytes);
std::string format_rate(Rate rate);

// A whole number without a unit, with a '-' if negative. REQUIRES: min <= max.
std::expected<std::int64_t, Mistake> parse_integer(std::string_view text, std::int64_t min,
                                                   std::int64_t max);

}  // namespace fopd::config
