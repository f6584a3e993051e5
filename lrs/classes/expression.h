#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/glob.h"
#include "lrs/classes/key.h"

namespace fopd::lrs {

// A range of numbers or addresses; both ends are included.
struct NumberRange {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    friend bool operator==(const NumberRange&, const NumberRange&) = default;
};
using AddressBytes = std::array<unsigned char, 16>;  // IPv4 mapped to IPv6, ::ffff:10.0.0.1.
struct AddressRange {
    AddressBytes low{};
    AddressBytes high{};

    friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

// Tests one key: whether its value is one of those listed, or none of them.
class Test {
public:
    // The values listed in a test: any number of each kind, in any order.
    struct Values {
        std::vector<std::string> texts;  // Sorted by the test.
        std::vector<Glob> globs;
        std::vector<NumberRange> numbers;
        std::vector<AddressRange> addresses;

        friend bool operator==(const Values&, const Values&) = default;
    };
    enum class Sense : std::uint8_t { kOneOf, kNoneOf };

    Test(Key key, Sense sense, Values values);

    Key key() const { return key_; }
    Sense sense() const { return sense_; }
    const Values& values() const { return values_; }
    bool matches(const RequestAttributes& attributes) const;
    // The number of values that pass the test. Nothing: unknown.
    std::optional<std::size_t> value_count() const;

    friend bool operator==(const Test&, const Test&) = default;

private:
    bool has(std::string_view text) const;

    Key key_;
    Sense sense_;
    Values values_;
};

// The requests a rule matches: those that pass all tests of at least one conjunction.
using Conjunction = std::vector<Test>;  // Empty: any request.
using Expression = std::vector<Conjunction>;
bool matches(const Conjunction& conjunction, const RequestAttributes& attributes);
bool matches(const Expression& expression, const RequestAttributes& attributes);
// The default `classes_by`: all keys that the expression tests, except the size.
KeySet default_classes_by(const Expression& expression);

// False when the text is neither an IPv4 nor an IPv6 address.
bool parse_ip(std::string_view text, AddressBytes& bytes);

// A request's text as a value to compare with ranges. Nothing or false: not in any range.
std::optional<std::uint64_t> number_in_rule(std::string_view text);
bool address_in_rule(std::string_view text, AddressBytes& bytes);

}  // namespace fopd::lrs
