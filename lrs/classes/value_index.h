#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lrs/classes/affix_index.h"
#include "lrs/classes/bit_rows.h"
#include "lrs/classes/expression.h"
#include "lrs/classes/glob_automaton.h"
#include "lrs/classes/interval_index.h"

namespace fopd::lrs {

// The values listed by many tests of one key: finds at once which tests list a given value. The
// owners of the tests are small numbers.
class ValueIndex {
public:
    void add(const Test::Values& values, std::uint32_t owner);
    // After the last add(), before the first find().
    void finish(std::size_t owner_count);

    // Whether finding a value takes much longer than a look-up in a ValueMemo.
    bool is_dear() const { return !globs_.empty() || !addresses_.empty(); }
    // Sets the bits of the owners that list the value. REQUIRES: `owners` has a bit for each owner.
    void find(std::string_view text, std::span<BitRows::Word> owners) const;
    void find(std::uint64_t number, std::span<BitRows::Word> owners) const;

private:
    void add_glob(const Glob& glob, std::uint32_t owner);
    void add_row(const std::uint32_t* row, std::span<BitRows::Word> owners) const {
        if (row != nullptr) BitRows::add_all(owners, rows_.at(*row));
    }

    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    struct Text {
        std::vector<std::uint32_t> owners;  // Empty after finish().
        std::uint32_t row = 0;
    };

    BitRows rows_;
    std::unordered_map<std::string, Text, Hash, std::equal_to<>> texts_;
    AffixIndex begins_{AffixIndex::Side::kBegin};
    AffixIndex ends_{AffixIndex::Side::kEnd};
    GlobAutomaton globs_;  // Globs that are neither prefix nor suffix; the number is the owner.
    IntervalIndex<std::uint64_t> numbers_;
    IntervalIndex<AddressBytes> addresses_;
};

}  // namespace fopd::lrs
