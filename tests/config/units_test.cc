// Goal: numbers with units mean one thing, never overflow, and print as something that reads back.
#include "config/units.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::config;

namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kSizeMax = std::numeric_limits<std::uint64_t>::max();

// A few thousand values from everywhere: small, round, around powers, and a walk through the rest.
std::vector<std::uint64_t> sample_values() {
    std::vector<std::uint64_t> values{0, kSizeMax};
    for (const std::uint64_t base : {2ULL, 10ULL, 60ULL, 1000ULL, 1024ULL}) {
        for (std::uint64_t power = 1; power < kSizeMax / base; power *= base) {
            for (const std::uint64_t factor : {1ULL, 3ULL, 7ULL}) {
                if (power > kSizeMax / factor) continue;
                const std::uint64_t value = power * factor;
                values.insert(values.end(), {value - 1, value, value + 1});
            }
        }
    }
    std::uint64_t state = 1;
    for (int count = 0; count < 2000; ++count) {
        state = state * 6364136223846793005 + 1442695040888963407;
        values.push_back(state >> (count % 60));
    }
    return values;
}

}  // namespace

TEST_CASE("config units: durations of every unit", "[config]") {
    REQUIRE(parse_duration("7ns") == 7ns);
    REQUIRE(parse_duration("100us") == 100us);
    REQUIRE(parse_duration("250ms") == 250ms);
    REQUIRE(parse_duration("5s") == 5s);
    REQUIRE(parse_duration("30min") == 30min);
    REQUIRE(parse_duration("1h") == 1h);
    REQUIRE(parse_duration("2d") == 48h);
    REQUIRE(parse_duration("0s") == 0s);
}

TEST_CASE("config units: sizes of every unit", "[config]") {
    const std::vector<std::pair<std::string, std::uint64_t>> sizes{
        {"0", 0},
        {"4096", 4096},
        {"17B", 17},
        {"4k", 4 * kKiB},
        {"4K", 4 * kKiB},
        {"3M", 3 * kKiB * kKiB},
        {"3G", 3 * kKiB * kKiB * kKiB},
        {"3T", 3 * kKiB * kKiB * kKiB * kKiB},
        {"3P", 3 * kKiB * kKiB * kKiB * kKiB * kKiB},
        {"1KiB", kKiB},
        {"64MiB", 64 * kKiB * kKiB},
        {"2GiB", 2 * kKiB * kKiB * kKiB},
        {"1TiB", kKiB * kKiB * kKiB * kKiB},
        {"1PiB", kKiB * kKiB * kKiB * kKiB * kKiB},
        {"5kB", 5'000},
        {"100MB", 100'000'000},
        {"5GB", 5'000'000'000},
        {"5TB", 5'000'000'000'000},
        {"5PB", 5'000'000'000'000'000},
        {"18446744073709551615", kSizeMax},
    };
    for (const auto& [text, size] : sizes) {
        CAPTURE(text);
        REQUIRE(parse_size(text) == size);
    }
}

TEST_CASE("config units: rates of operations and of bytes", "[config]") {
    REQUIRE(parse_rate("200/s") == Rate{200, Rate::Unit::kOperations});
    REQUIRE(parse_rate("0/s") == Rate{0, Rate::Unit::kOperations});
    REQUIRE(parse_rate("50MB/s") == Rate{50'000'000, Rate::Unit::kBytes});
    REQUIRE(parse_rate("1MiB/s") == Rate{kKiB * kKiB, Rate::Unit::kBytes});
    REQUIRE(parse_rate("1B/s") == Rate{1, Rate::Unit::kBytes});
    for (const char* text :
         {"", "/s", "s", "200", "200s", "200/", "200/min", "1k/s", "-1/s", "1e30/s", "0.5/s",
          "99999999999999999999/s", "16384PiB/s", "1/s/s", "1 /s"}) {
        CAPTURE(text);
        REQUIRE_FALSE(parse_rate(text).has_value());
    }
    REQUIRE(parse_rate("1e30/s").error().wrong == "\"1e30/s\" is not a whole number");
    REQUIRE(parse_rate("1k/s").error().wrong == "\"1k/s\" does not say of what");
}

TEST_CASE("config units: an invalid duration or size is refused with a reason", "[config]") {
    for (const char* text : {"",
                             " ",
                             "s",
                             "-1s",
                             "+1s",
                             "1 s",
                             " 1s",
                             "1s ",
                             "1.5s",
                             "1,5s",
                             "01s",
                             "1e3s",
                             "0x1s",
                             "1m",
                             "1sec",
                             "1S",
                             "5",
                             "1ss",
                             "9223372036854775808ns",
                             "106752d",
                             "18446744073709551616ns",
                             "99999999999999999999999999d",
                             "\xc2\xb5s",
                             "1\xc2\xb5s",
                             "1s\n",
                             "\xff"}) {
        CAPTURE(text);
        const auto duration = parse_duration(text);
        REQUIRE_FALSE(duration.has_value());
        REQUIRE_FALSE(duration.error().wrong.empty());
        REQUIRE_FALSE(duration.error().right.empty());
    }
    for (const char* text :
         {"",         " ",       "k",         "-1",   "+1",   "1 k", "1.5k", "01k",
          "1e3",      "0x10",    "1m",        "1kb",  "1Kib", "1kk", "1EiB", "18446744073709551616",
          "16384PiB", "18447PB", "16777216T", "1B/s", "1\n",  "\xff"}) {
        CAPTURE(text);
        const auto size = parse_size(text);
        REQUIRE_FALSE(size.has_value());
        REQUIRE_FALSE(size.error().wrong.empty());
        REQUIRE_FALSE(size.error().right.empty());
    }
}

TEST_CASE("config units: an error suggests what was probably meant", "[config]") {
    REQUIRE(parse_duration("5").error().right ==
            "write 5s, 5ms or another of ns, us, ms, s, min, h or d");
    REQUIRE(parse_duration("5m").error().right == "write 5min or 5ms");
    REQUIRE_THAT(parse_duration("5MS").error().right, ContainsSubstring("did you mean \"ms\"?"));
    REQUIRE_THAT(parse_size("5g").error().right, ContainsSubstring("did you mean \"G\"?"));
    REQUIRE_THAT(parse_size("5mib").error().right, ContainsSubstring("did you mean \"MiB\"?"));
}

TEST_CASE("config units: the printed form has the fewest digits", "[config]") {
    const std::vector<std::pair<Duration, std::string>> durations{
        {0s, "0s"},
        {1ns, "1ns"},
        {1500us, "1500us"},
        {2s, "2s"},
        {90s, "90s"},
        {60s, "1min"},
        {90min, "90min"},
        {1h, "1h"},
        {24h, "1d"},
        {36h, "36h"},
        {Duration::max(), "9223372036854775807ns"},
    };
    for (const auto& [span, text] : durations) REQUIRE(format_duration(span) == text);
    const std::vector<std::pair<std::uint64_t, std::string>> sizes{
        {0, "0"},
        {1, "1"},
        {1000, "1kB"},
        {1024, "1KiB"},
        {1500, "1500"},
        {4096, "4KiB"},
        {10'240, "10KiB"},
        {1'024'000, "1000KiB"},
        {100'000'000, "100MB"},
        {1'000'000'000'000, "1TB"},
        {64 * kKiB * kKiB, "64MiB"},
        {kSizeMax, "18446744073709551615"},
    };
    for (const auto& [size, text] : sizes) REQUIRE(format_size(size) == text);
    REQUIRE(format_rate({4, Rate::Unit::kOperations}) == "4/s");
    REQUIRE(format_rate({4, Rate::Unit::kBytes}) == "4B/s");
    REQUIRE(format_rate({4096, Rate::Unit::kBytes}) == "4KiB/s");
}

TEST_CASE("config units: printed values can be read back", "[config]") {
    for (const std::uint64_t value : sample_values()) {
        CAPTURE(value);
        REQUIRE(parse_size(format_size(value)) == value);
        const Rate bytes{value, Rate::Unit::kBytes};
        const Rate operations{value, Rate::Unit::kOperations};
        REQUIRE(parse_rate(format_rate(bytes)) == bytes);
        REQUIRE(parse_rate(format_rate(operations)) == operations);
        const Duration span(static_cast<Duration::rep>(value >> 1));
        REQUIRE(parse_duration(format_duration(span)) == span);
    }
}

TEST_CASE("config units: whole numbers keep to their range, to the last one", "[config]") {
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    REQUIRE(parse_integer("9223372036854775807", kMin, kMax) == kMax);
    REQUIRE(parse_integer("-9223372036854775808", kMin, kMax) == kMin);
    REQUIRE(parse_integer("-0", -1, 1) == 0);
    REQUIRE(parse_integer("-3", -3, 3) == -3);
    REQUIRE(parse_integer("9223372036854775808", kMin, kMax).error().wrong ==
            "\"9223372036854775808\" is too large");
    REQUIRE(parse_integer("-9223372036854775809", kMin, kMax).error().wrong ==
            "\"-9223372036854775809\" is too small");
    REQUIRE(parse_integer("-4", -3, 3).error().wrong == "\"-4\" is too small");
    REQUIRE(parse_integer("4", -3, 3).error().wrong == "\"4\" is too large");
    REQUIRE(parse_integer("4", -3, 3).error().right == "write a whole number from -3 to 3");
    for (const char* text :
         {"", "-", "+1", "1 ", " 1", "1.0", "0x1", "1e1", "--1", "00", "01", "-01"}) {
        CAPTURE(text);
        REQUIRE_FALSE(parse_integer(text, kMin, kMax).has_value());
    }
}
