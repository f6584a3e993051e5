#include "lrs/tbf/rule.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <arpa/inet.h>

#include "config/units.h"
#include "core/printable.h"

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

// One as it is, several in braces.
std::string one_or_list(const std::vector<std::string>& words) {
    if (words.size() == 1) return words.front();
    std::string list = "{";
    for (const std::string& word : words) {
        if (list.size() > 1) list += ' ';
        list += word;
    }
    return list + '}';
}

std::string rates_of(const Limits& limits) {
    if (limits.is_blocked) return "block";
    if (limits.is_unlimited()) return "unlimited";
    using Unit = config::Rate::Unit;
    std::vector<std::string> rates;
    const auto add = [&rates](const std::optional<Limit>& limit, Unit unit) {
        if (!limit) return;
        rates.push_back(config::format_rate({.per_second = limit->per_second, .unit = unit}));
    };
    add(limits.operations, Unit::kOperations);
    add(limits.bytes, Unit::kBytes);
    return one_or_list(rates);
}

// Those that go without saying are not said.
std::string bursts_of(const Limits& limits) {
    std::vector<std::string> bursts;
    const auto add = [&bursts](const std::optional<Limit>& limit, auto format) {
        if (!limit || limit->burst == default_burst(limit->per_second)) return;
        bursts.push_back(format(limit->burst));
    };
    add(limits.operations, [](std::uint64_t count) { return std::to_string(count); });
    add(limits.bytes, [](std::uint64_t size) {
        std::string text = config::format_size(size);
        if (text.back() >= '0' && text.back() <= '9') text += 'B';
        return text;
    });
    return bursts.empty() ? std::string() : one_or_list(bursts);
}

std::string words_of(KeySet keys) {
    if (keys.is_empty()) return "none";
    std::vector<std::string> words;
    keys.for_each([&words](Key key) { words.emplace_back(name_of(key)); });
    return one_or_list(words);
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
    if (values_.addresses.empty() || !parse_ip(text, bytes)) return false;
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

std::string Rule::text() const {
    std::string shown = name + ' ' + expression_text + " rate=" + rates_of(limits);
    const std::string bursts = bursts_of(limits);
    if (!bursts.empty()) shown += " burst=" + bursts;
    if (classes_by != default_classes_by(expression)) shown += " by=" + words_of(classes_by);
    if (rank != kRankDefault) shown += " rank=" + std::to_string(rank);
    return shown;
}

ClassHash Rule::class_of(const RequestAttributes& attributes, const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(id);
    classes_by.for_each([&](Key by) {
        switch (by) {
            // As they are: the same text comes of the same numbers.
            case Key::kClient: {
                std::array<std::uint64_t, 2> words{};
                std::memcpy(words.data(), attributes.client.data(), sizeof(words));
                hash.add(words[0]);
                hash.add(words[1]);
                break;
            }
            case Key::kObject:
                hash.add(attributes.object.high);
                hash.add(attributes.object.low);
                break;
            case Key::kOp: hash.add(std::uint64_t{attributes.type}); break;
            default: {
                Digits digits;
                hash.add(text_of(by, attributes, digits));
            }
        }
    });
    return hash.result();
}

ClassHash Rule::bucket_of(const ClassHash& of_class, const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(of_class.high);
    hash.add(of_class.low);
    hash.add(limits_id);
    return hash.result();
}

ClassHash Rule::own_class(const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(id);
    return hash.result();
}

std::string Rule::class_name(const RequestAttributes& attributes) const {
    std::string shown = name;
    char before = '{';
    classes_by.for_each([&](Key by) {
        shown += before;
        shown += name_of(by);
        shown += '=';
        Digits digits;
        core::append_printable(shown, text_of(by, attributes, digits));
        before = ' ';
    });
    if (!classes_by.is_empty()) shown += '}';
    return shown;
}

}  // namespace fopd::lrs
