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

// Numbers, or addresses, from one to another, both included.
struct NumberRange {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    friend bool operator==(const NumberRange&, const NumberRange&) = default;
};
using AddressBytes = std::array<unsigned char, 16>;  // IPv4 as IPv6 has it, ::ffff:10.0.0.1.
struct AddressRange {
    AddressBytes low{};
    AddressBytes high{};

    friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

// Looks at one key: whether its value is one of those listed, or none of them.
class Test {
public:
    // What a value is compared with. Of each kind in any number, in any order.
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
    // How many values it lets pass. Nothing: nobody can tell.
    std::optional<std::size_t> value_count() const;

    friend bool operator==(const Test&, const Test&) = default;

private:
    bool has(std::string_view text) const;

    Key key_;
    Sense sense_;
    Values values_;
};

// Which requests a rule is for: those for which all tests of one of the conjunctions hold.
using Conjunction = std::vector<Test>;  // Empty: any request.
using Expression = std::vector<Conjunction>;
bool matches(const Conjunction& conjunction, const RequestAttributes& attributes);
bool matches(const Expression& expression, const RequestAttributes& attributes);
// What classes are divided by when nobody says: all that is looked at, but for the size.
KeySet default_classes_by(const Expression& expression);

// False when the text is neither an IPv4 nor an IPv6 address.
bool parse_ip(std::string_view text, AddressBytes& bytes);

// As ranges compare what a request has. Nothing, or false: it is in no range.
std::optional<std::uint64_t> number_in_rule(std::string_view text);
bool address_in_rule(std::string_view text, AddressBytes& bytes);

}  // namespace fopd::lrs
