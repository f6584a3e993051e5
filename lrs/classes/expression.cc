#include "lrs/classes/expression.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <arpa/inet.h>

namespace fopd::lrs {

namespace {

bool is_in(const std::vector<NumberRange>& ranges, std::uint64_t number) {
    return std::ranges::any_of(ranges, [number](const NumberRange& range) {
        return range.low <= number && number <= range.high;
    });
}

}  // namespace

// Only decimal digits: no sign, no blank, no overflow.
std::optional<std::uint64_t> number_in_rule(std::string_view text) {
    if (text.empty()) return std::nullopt;
    std::uint64_t number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        if (__builtin_mul_overflow(number, std::uint64_t{10}, &number)) return std::nullopt;
        if (__builtin_add_overflow(number, static_cast<std::uint64_t>(c - '0'), &number))
            return std::nullopt;
    }
    return number;
}

// After '%' comes the interface of a link-local address, which is ignored.
bool address_in_rule(std::string_view text, AddressBytes& bytes) {
    return parse_ip(text.substr(0, text.find('%')), bytes);
}

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
    const bool is_listed =
        !for_each_text(key_, attributes, [this](std::string_view text) { return !has(text); });
    return is_listed == wanted;
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
    if (!values_.numbers.empty()) {
        const auto number = number_in_rule(text);
        if (number && is_in(values_.numbers, *number)) return true;
    }
    AddressBytes bytes{};
    if (values_.addresses.empty() || !address_in_rule(text, bytes)) return false;
    return std::ranges::any_of(values_.addresses, [&bytes](const AddressRange& range) {
        return range.low <= bytes && bytes <= range.high;
    });
}

bool matches(const Conjunction& conjunction, const RequestAttributes& attributes) {
    return std::ranges::all_of(conjunction,
                               [&](const Test& test) { return test.matches(attributes); });
}

bool matches(const Expression& expression, const RequestAttributes& attributes) {
    return std::ranges::any_of(expression, [&](const Conjunction& conjunction) {
        return matches(conjunction, attributes);
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
