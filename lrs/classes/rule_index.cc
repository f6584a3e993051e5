#include "lrs/classes/rule_index.h"

#include <algorithm>
#include <bit>
#include <string>

namespace fopd::lrs {

namespace {

// Whether a key has several tests, and at least one of them is kOneOf.
bool has_doubles(const Conjunction& conjunction) {
    KeySet listed;
    KeySet seen;
    for (const Test& test : conjunction) {
        const bool is_list = test.sense() == Test::Sense::kOneOf;
        // Several kNoneOf tests of a key are equal to one with all their values.
        if (listed.has(test.key()) || (is_list && seen.has(test.key()))) return true;
        seen.add(test.key());
        if (is_list) listed.add(test.key());
    }
    return false;
}

RuleMistake too_much(const std::string& what, std::size_t most, const char* right) {
    return {.wrong = "with this one the rules have more than " + std::to_string(most) + ' ' + what +
                     " in all",
            .right = right};
}

}  // namespace

std::optional<RuleMistake> RuleSum::add(const Expression& expression) {
    for (const Conjunction& conjunction : expression) {
        ++alternatives_;
        for (const Test& test : conjunction) add(test.values());
        if (has_doubles(conjunction)) ++doubles_;
    }
    if (alternatives_ > kAlternativesMax) {
        return too_much("alternatives", kAlternativesMax, "write a list of values instead of ','");
    }
    if (values_ > kValuesMax) {
        return too_much("values", kValuesMax, "write patterns or ranges instead of single values");
    }
    if (ranges_ > kRangesMax) {
        return too_much("ranges", kRangesMax, "let ranges that lie side by side be one");
    }
    if (glob_states_ > kGlobStatesMax) {
        return too_much("bytes of patterns with '*' elsewhere than at one end", kGlobStatesMax,
                        "let patterns have '*' at their end or at their start alone");
    }
    if (doubles_ > kDoubleMax) {
        return too_much("alternatives that ask one key twice", kDoubleMax,
                        "write one list of values for each key");
    }
    return std::nullopt;
}

void RuleSum::add(const Test::Values& values) {
    values_ += values.texts.size() + values.globs.size();
    for (const Glob& glob : values.globs) {
        if (!is_begin(glob) && !is_end(glob)) glob_states_ += GlobAutomaton::states_of(glob);
    }
    ranges_ += values.numbers.size() + values.addresses.size();
}

void RuleIndex::add(const Expression& expression) {
    for (const Conjunction& conjunction : expression) {
        add(conjunction);
        expression_of_.push_back(static_cast<std::uint32_t>(expression_count_));
    }
    ++expression_count_;
}

void RuleIndex::add(const Conjunction& conjunction) {
    const auto number = static_cast<std::uint32_t>(expression_of_.size());
    for (ByKey& by : keys_) by.else_passes.push_back(true);
    if (has_doubles(conjunction)) {
        // The index lets it always pass; the tests are evaluated one by one.
        doubles_.emplace_back(number, conjunction);
        return;
    }
    for (const Test& test : conjunction) {
        ByKey& by = keys_[static_cast<std::size_t>(test.key())];
        by.is_asked = true;
        by.else_passes[number] = test.sense() == Test::Sense::kNoneOf;
        by.values.add(test.values(), number);
    }
}

void RuleIndex::finish() {
    const std::size_t count = expression_of_.size();
    ENSURE(count <= RuleSum::kAlternativesMax);
    for (ByKey& by : keys_) {
        if (by.is_asked) {
            by.unlisted.resize(BitRows::words_for(count));
            for (std::size_t i = 0; i < count; ++i) {
                if (by.else_passes[i]) BitRows::set(by.unlisted, i);
            }
            by.values.finish(count);
        }
        by.else_passes = {};
    }
}

void RuleIndex::find_hits(Key key, const RequestAttributes& attributes, RuleMemo* memo,
                          std::span<BitRows::Word> hits) const {
    const auto index = static_cast<std::size_t>(key);
    const ValueIndex& values = keys_[index].values;
    if (key == Key::kSize) return values.find(attributes.size_bytes, hits);
    for_each_text(key, attributes, [&](std::string_view text) {
        if (memo != nullptr && values.is_dear()) {
            memo->by_key[index].find(values, text, hits);
        } else {
            values.find(text, hits);
        }
        return true;
    });
}

std::optional<std::size_t> RuleIndex::first_for(const RequestAttributes& attributes,
                                                RuleMemo* memo) const {
    const std::size_t count = expression_of_.size();
    const std::size_t words = BitRows::words_for(count);
    Alternatives left;
    std::fill_n(left.begin(), words, ~BitRows::Word{0});
    for (std::size_t i = 0; i < kKeyCount; ++i) {
        const ByKey& by = keys_[i];
        if (!by.is_asked) continue;
        Alternatives hits;
        std::fill_n(hits.begin(), words, BitRows::Word{0});
        find_hits(static_cast<Key>(i), attributes, memo, std::span(hits).first(words));
        // A listed value inverts the result: kOneOf tests that list it pass, kNoneOf tests that
        // list it fail.
        for (std::size_t word = 0; word < words; ++word)
            left[word] &= by.unlisted[word] ^ hits[word];
    }
    auto doubled = doubles_.begin();
    for (std::size_t word = 0; word < words; ++word) {
        for (BitRows::Word bits = left[word]; bits != 0; bits &= bits - 1) {
            const std::size_t number =
                word * BitRows::kWordBits + static_cast<std::size_t>(std::countr_zero(bits));
            if (number >= count) return std::nullopt;
            while (doubled != doubles_.end() && doubled->first < number) ++doubled;
            const bool is_double = doubled != doubles_.end() && doubled->first == number;
            if (!is_double || matches(doubled->second, attributes)) return expression_of_[number];
        }
    }
    return std::nullopt;
}

}  // namespace fopd::lrs
