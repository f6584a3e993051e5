#include "lrs/classes/expression.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <arpa/inet.h>

namespace fopd::lrs {

namespace {

// Nothing else is a number: no sign, no blank, no overflow.
bool parse_digits(std::string_view text, std::uint64_t& number) {
    if (text.empty()) return false;
    number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
        if (__builtin_mul_overflow(number, std::uint64_t{10}, &number)) return false;
        if (__builtin_add_overflow(number, static_cast<std::uint64_t>(c - '0'), &number))
            return false;
    }
    return true;
}

bool is_in(const std::vector<NumberRange>& ranges, std::uint64_t number) {
    return std::ranges::any_of(ranges, [number](const NumberRange& range) {
        return range.low <= number && number <= range.high;
    });
}

}  // namespace

bool parse_ip(std::string_view text, AddressBytes& bytes) {
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    if (text.size() >= buffer.size()) return false;
    std::ranges::copy(text, buffer.begin());
    if (::inet_pton(AF_INET6, buffer.data(), bytes.data()) == 1) return true;
    std::array<unsigned char, 4> four{};
    if (::inet_pton(AF_INET, buffer.data(), four.data()) != 1) return false;
    bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, four[0], four[1], four[2], four[3]};
    return true;
}

Test::Test(Key key, Sense sense, Values values)
    : key_(key), sense_(sense), values_(std::move(values)) {
    std::ranges::sort(values_.texts);
}

bool Test::matches(const RequestAttributes& attributes) const {
    const bool wanted = sense_ == Sense::kOneOf;
    if (key_ == Key::kSize) return is_in(values_.numbers, attributes.size_bytes) == wanted;
    Digits digits;
    return has(text_of(key_, attributes, digits)) == wanted;
}

std::optional<std::size_t> Test::value_count() const {
    const auto is_one = [](const AddressRange& range) { return range.low == range.high; };
    const bool is_listed = sense_ == Sense::kOneOf && values_.globs.empty() &&
                           values_.numbers.empty() &&
                           std::ranges::all_of(values_.addresses, is_one);
    if (!is_listed) return std::nullopt;
    return values_.texts.size() + values_.addresses.size();
}

bool Test::has(std::string_view text) const {
    if (values_.texts.size() == 1 && values_.texts.front() == text) return true;
    if (values_.texts.size() > 1 &&
        std::ranges::binary_search(values_.texts, text, std::less<>())) {
        return true;
    }
    for (const Glob& glob : values_.globs) {
        if (glob.matches(text)) return true;
    }
    std::uint64_t number = 0;
    if (!values_.numbers.empty() && parse_digits(text, number) && is_in(values_.numbers, number)) {
        return true;
    }
    AddressBytes bytes{};
    // Behind '%' is the interface of a link-local address.
    if (values_.addresses.empty() || !parse_ip(text.substr(0, text.find('%')), bytes)) return false;
    return std::ranges::any_of(values_.addresses, [&bytes](const AddressRange& range) {
        return range.low <= bytes && bytes <= range.high;
    });
}

bool matches(const Expression& expression, const RequestAttributes& attributes) {
    return std::ranges::any_of(expression, [&](const Conjunction& conjunction) {
        return std::ranges::all_of(conjunction,
                                   [&](const Test& test) { return test.matches(attributes); });
    });
}

KeySet default_classes_by(const Expression& expression) {
    KeySet keys;
    for (const Conjunction& conjunction : expression) {
        for (const Test& test : conjunction) {
            if (test.key() != Key::kSize) keys.add(test.key());
        }
    }
    return keys;
}

}  // namespace fopd::lrs
