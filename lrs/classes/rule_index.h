#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lrs/classes/expression.h"
#include "lrs/classes/rule_lexer.h"
#include "lrs/classes/value_index.h"
#include "lrs/classes/value_memo.h"

namespace fopd::lrs {

// Adds up the sizes of all rules and checks them against limits, which bound the memory of the
// index and the time of a lookup.
class RuleSum {
public:
    static constexpr std::size_t kAlternativesMax = ValueMemo::kOwnersMax;
    static constexpr std::size_t kValuesMax = 16384;
    static constexpr std::size_t kRangesMax = 4096;
    // States of globs that are not only a prefix or suffix.
    static constexpr std::size_t kGlobStatesMax = GlobAutomaton::kStatesMax;
    // Alternatives with several tests of one key; these are evaluated one by one.
    static constexpr std::size_t kDoubleMax = 64;

    // Adds the expression of a rule. Returns the limit that is now exceeded, if any.
    std::optional<RuleMistake> add(const Expression& expression);

private:
    void add(const Test::Values& values);

    std::size_t alternatives_ = 0;
    std::size_t values_ = 0;
    std::size_t ranges_ = 0;
    std::size_t glob_states_ = 0;
    std::size_t doubles_ = 0;
};

// One core's cache of values looked up in an index. Another index needs a new one.
struct RuleMemo {
    std::array<ValueMemo, kKeyCount> by_key;
};

// Finds the first of many expressions that matches a request, in time that hardly depends on their
// number: the request's value of each key is looked up once, which yields a bit for each
// alternative that passes.
class RuleIndex {
public:
    RuleIndex() = default;
    // REQUIRES: within the limits of RuleSum.
    template <typename Rules>
    explicit RuleIndex(const Rules& rules) {
        for (const auto& rule : rules) add(rule.expression);
        finish();
    }

    // The index of the first rule that matches; none: no rule matches.
    std::optional<std::size_t> first_for(const RequestAttributes& attributes,
                                         RuleMemo* memo = nullptr) const;

private:
    // The tests of one key, for all alternatives.
    struct ByKey {
        bool is_asked = false;
        std::vector<bool> else_passes;  // Per alternative: passes if the value is not listed. Empty
                                        // after finish().
        std::vector<BitRows::Word> unlisted;
        ValueIndex values;
    };
    using Alternatives = std::array<BitRows::Word, RuleSum::kAlternativesMax / BitRows::kWordBits>;

    void add(const Expression& expression);
    void add(const Conjunction& conjunction);
    void finish();
    void find_hits(Key key, const RequestAttributes& attributes, RuleMemo* memo,
                   std::span<BitRows::Word> hits) const;

    std::size_t expression_count_ = 0;
    std::vector<std::uint32_t> expression_of_;  // For each alternative, its expression.
    std::array<ByKey, kKeyCount> keys_;
    // Alternatives that find_hits() cannot decide, by their numbers.
    std::vector<std::pair<std::uint32_t, Conjunction>> doubles_;
};

}  // namespace fopd::lrs
