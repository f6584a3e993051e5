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
    // Of patterns that have more than a start or an end.
    static constexpr std::size_t kGlobPlacesMax = GlobAutomaton::kPlacesMax;
    // Alternatives that ask one key twice for values: these are looked at one by one.
    static constexpr std::size_t kDoubleMax = 64;

    // One more rule. What is too much then, if anything.
    std::optional<RuleMistake> add(const Expression& expression);

private:
    void add(const Test::Values& values);

    std::size_t alternatives_ = 0;
    std::size_t values_ = 0;
    std::size_t ranges_ = 0;
    std::size_t glob_places_ = 0;
    std::size_t doubles_ = 0;
};

// What one core remembers of the values that it looked up in an index. For another index it has to
// be a new one.
struct RuleMemo {
    std::array<ValueMemo, kKeyCount> by_key;
};

// Finds the first of many expressions that is for a request, in a time that hardly depends on how
// many there are: the request's value of each key is looked up once, which tells at once for all
// alternatives which of them it lets pass.
class RuleIndex {
public:
    RuleIndex() = default;
    // Requires: they are no more than RuleSum allows.
    template <typename Rules>
    explicit RuleIndex(const Rules& rules) {
        for (const auto& rule : rules) add(rule.expression);
        finish();
    }

    // Its number. Nothing: none is for it.
    std::optional<std::size_t> first_for(const RequestAttributes& attributes,
                                         RuleMemo* memo = nullptr) const;

private:
    // What one key has to say about the alternatives.
    struct ByKey {
        bool is_asked = false;
        std::vector<bool> else_passes;  // Without a value that is listed; until it is finished.
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
    std::vector<std::uint32_t> expression_of_;  // Of each alternative.
    std::array<ByKey, kKeyCount> keys_;
    // Those that the keys alone do not decide, by their numbers.
    std::vector<std::pair<std::uint32_t, Conjunction>> doubles_;
};

}  // namespace fopd::lrs
