#include "config/units.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "core/ensure.h"

namespace fopd::config {
namespace {

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

// Largest first: the first that divides a value gives its shortest form.
constexpr std::array kDurationUnits{
    Unit{"d", 86'400'000'000'000},
    Unit{"h", 3'600'000'000'000},
    Unit{"min", 60'000'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"ms", 1'000'000},
    Unit{"us", 1'000},
    Unit{"ns", 1},
};

constexpr std::uint64_t kKiB = 1024;
// The first name of each size is the printed one.
constexpr std::array kSizeUnits{
    Unit{"PiB", kKiB* kKiB* kKiB* kKiB* kKiB},
    Unit{"TiB", kKiB* kKiB* kKiB* kKiB},
    Unit{"GiB", kKiB* kKiB* kKiB},
    Unit{"MiB", kKiB* kKiB},
    Unit{"KiB", kKiB},
    Unit{"PB", 1'000'000'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"MB", 1'000'000},
    Unit{"kB", 1'000},
    Unit{"B", 1},
    Unit{"", 1},
    Unit{"k", kKiB},
    Unit{"K", kKiB},
    Unit{"M", kKiB* kKiB},
    Unit{"G", kKiB* kKiB* kKiB},
    Unit{"T", kKiB* kKiB* kKiB* kKiB},
    Unit{"P", kKiB* kKiB* kKiB* kKiB* kKiB},
};
constexpr std::size_t kPrintedSizeUnits = 10;

// Describes a kind of number, for messages.
struct Family {
    const char* a_value;  // "a duration such as 30s".
    const char* units;    // "ns, us, …".
};
constexpr Family kDuration{"a duration such as 30s or 250ms", "ns, us, ms, s, min, h or d"};
constexpr Family kSize{"a size such as 64MiB or 4k",
                       "B, k, M, G, T, P, KiB to PiB (1024) or kB to PB (1000)"};
constexpr Family kRate{"a rate such as 200/s or 50MB/s", "/s, with a size in front for bytes"};

std::string write_a(const Family& family) {
    return std::string("write ") + family.a_value;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool same_but_for_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::optional<std::uint64_t> multiplied(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}

// REQUIRES: only digits.
std::optional<std::uint64_t> number_of(std::string_view digits) {
    std::uint64_t number = 0;
    for (const char c : digits) {
        const auto digit = static_cast<std::uint64_t>(c - '0');
        if (__builtin_mul_overflow(number, std::uint64_t{10}, &number)) return std::nullopt;
        if (__builtin_add_overflow(number, digit, &number)) return std::nullopt;
    }
    return number;
}

struct Split {
    std::uint64_t number;
    std::string_view unit;
};

// Splits the leading digits from the rest.
std::expected<Split, Mistake> split(std::string_view text, const Family& family) {
    const auto mistake = [&](const char* what, std::string right) {
        return std::unexpected(Mistake{in_quotes(text) + what, std::move(right)});
    };
    if (text.empty()) return mistake(" is empty", write_a(family));
    if (text[0] == '-') return mistake(" is negative", write_a(family));
    std::size_t length = 0;
    while (length < text.size() && is_digit(text[length])) ++length;
    const std::string_view unit = text.substr(length);
    if (length == 0) return mistake(" does not start with a digit", write_a(family));
    if (unit.starts_with('.') || unit.starts_with(',')) {
        return mistake(" is not a whole number", "use a smaller unit instead of a fraction");
    }
    if (unit.find(' ') != std::string_view::npos) {
        return mistake(" has a space in it", "write number and unit together, as one word");
    }
    if (length > 1 && text[0] == '0') return mistake(" starts with 0", "drop the leading zeros");
    const auto number = number_of(text.substr(0, length));
    if (!number) return mistake(" is too large", write_a(family));
    return Split{*number, unit};
}

std::expected<std::uint64_t, Mistake> scaled(std::string_view text, const Split& parts,
                                             std::span<const Unit> units, const Family& family) {
    for (const Unit& unit : units) {
        if (unit.name != parts.unit) continue;
        const auto value = multiplied(parts.number, unit.factor);
        if (!value) {
            return std::unexpected(Mistake{in_quotes(text) + " is too large", write_a(family)});
        }
        return *value;
    }
    std::string right = std::string("units are ") + family.units;
    for (const Unit& unit : units) {
        if (!same_but_for_case(unit.name, parts.unit)) continue;
        right = "did you mean " + in_quotes(unit.name) + "? " + right;
        break;
    }
    return std::unexpected(Mistake{
        in_quotes(text) + " has the unknown unit " + in_quotes(parts.unit), std::move(right)});
}

}  // namespace

std::expected<Duration, Mistake> parse_duration(std::string_view text) {
    const auto parts = split(text, kDuration);
    if (!parts) return std::unexpected(parts.error());
    if (parts->unit.empty()) {
        const std::string number = std::to_string(parts->number);
        return std::unexpected(
            Mistake{in_quotes(text) + " has no unit",
                    "write " + number + "s, " + number + "ms or another of " + kDuration.units});
    }
    if (parts->unit == "m") {
        const std::string number = std::to_string(parts->number);
        return std::unexpected(Mistake{in_quotes(text) + " is ambiguous",
                                       "write " + number + "min or " + number + "ms"});
    }
    const auto count = scaled(text, *parts, kDurationUnits, kDuration);
    if (!count) return std::unexpected(count.error());
    if (*count > static_cast<std::uint64_t>(Duration::max().count())) {
        return std::unexpected(Mistake{in_quotes(text) + " is too large", write_a(kDuration)});
    }
    return Duration(static_cast<Duration::rep>(*count));
}

std::expected<std::uint64_t, Mistake> parse_size(std::string_view text) {
    const auto parts = split(text, kSize);
    if (!parts) return std::unexpected(parts.error());
    return scaled(text, *parts, kSizeUnits, kSize);
}

std::expected<Rate, Mistake> parse_rate(std::string_view text) {
    constexpr std::string_view kPerSecond = "/s";
    if (text.empty() || !text.ends_with(kPerSecond)) {
        return std::unexpected(Mistake{in_quotes(text) + " does not end with /s", write_a(kRate)});
    }
    const std::string_view amount = text.substr(0, text.size() - kPerSecond.size());
    const auto parts = split(amount, kRate);
    if (!parts) return std::unexpected(parts.error());
    if (parts->unit.empty()) return Rate{parts->number, Rate::Unit::kOperations};
    const bool is_size = std::ranges::any_of(
        kSizeUnits, [&](const Unit& unit) { return same_but_for_case(unit.name, parts->unit); });
    if (!is_size && !parts->unit.ends_with('B')) {
        return std::unexpected(Mistake{in_quotes(text) + " is not a whole number", write_a(kRate)});
    }
    if (!parts->unit.ends_with('B')) {
        return std::unexpected(Mistake{in_quotes(text) + " does not say of what",
                                       "write bytes as 50MB/s and operations as 200/s"});
    }
    const auto size = scaled(amount, *parts, kSizeUnits, kRate);
    if (!size) return std::unexpected(size.error());
    return Rate{*size, Rate::Unit::kBytes};
}

std::string format_duration(Duration span) {
    ENSURE(span.count() >= 0);
    const auto count = static_cast<std::uint64_t>(span.count());
    if (count == 0) return "0s";
    const auto unit = std::ranges::find_if(
        kDurationUnits, [count](const Unit& candidate) { return count % candidate.factor == 0; });
    ENSURE(unit != kDurationUnits.end());  // The last unit divides everything.
    return std::to_string(count / unit->factor).append(unit->name);
}

std::string format_size(std::uint64_t size_bytes) {
    std::string shortest = std::to_string(size_bytes);
    if (size_bytes == 0) return shortest;
    std::size_t digits_min = shortest.size();
    for (const Unit& unit : std::span(kSizeUnits).first(kPrintedSizeUnits)) {
        if (size_bytes % unit.factor != 0) continue;
        const std::string digits = std::to_string(size_bytes / unit.factor);
        if (digits.size() >= digits_min) continue;
        digits_min = digits.size();
        shortest = digits + std::string(unit.name);
    }
    return shortest;
}

std::string format_rate(Rate rate) {
    if (rate.unit == Rate::Unit::kOperations) return std::to_string(rate.per_second) + "/s";
    std::string size = format_size(rate.per_second);
    if (is_digit(size.back())) size += 'B';
    return size + "/s";
}

std::expected<std::int64_t, Mistake> parse_integer(std::string_view text, std::int64_t min,
                                                   std::int64_t max) {
    ENSURE(min <= max);
    const std::string right =
        "write a whole number from " + std::to_string(min) + " to " + std::to_string(max);
    const auto mistake = [&](std::string wrong) {
        return std::unexpected(Mistake{std::move(wrong), right});
    };
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative ? 1 : 0);
    bool all_digits = !digits.empty();
    for (const char c : digits) all_digits = all_digits && is_digit(c);
    if (!all_digits) return mistake(in_quotes(text) + " is not a whole number");
    if (digits.size() > 1 && digits[0] == '0') {
        return std::unexpected(
            Mistake{in_quotes(text) + " starts with 0", "drop the leading zeros"});
    }
    const auto magnitude = number_of(digits);
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const bool fits = magnitude && *magnitude <= kLargest + (negative ? 1 : 0);
    // In two's complement: the smallest value's magnitude has no positive counterpart.
    const auto value =
        fits ? static_cast<std::int64_t>(negative ? -*magnitude : *magnitude) : std::int64_t{0};
    if (fits ? value < min : negative) return mistake(in_quotes(text) + " is too small");
    if (fits ? value > max : !negative) return mistake(in_quotes(text) + " is too large");
    return value;
}

}  // namespace fopd::config
