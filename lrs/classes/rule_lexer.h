#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::lrs {

// What is wrong with a rule, where, and what would be right.
struct RuleMistake {
    std::size_t line = 0;    // Of a file or a list of rules, from 1; 0: there was one rule alone.
    std::size_t column = 1;  // Counts characters, from 1.
    std::string wrong;
    std::string right;
};
// "line 3, column 12: what is wrong; what would be right".
std::string to_string(const RuleMistake& mistake);

// No rule is longer.
inline constexpr std::size_t kRuleBytesMax = 4096;

// A word or sign of a rule.
struct RuleToken {
    enum class Kind : std::uint8_t {
        kWord,
        kAnd,
        kOr,
        kEqual,
        kNotEqual,
        kLess,
        kLessEqual,
        kGreater,
        kGreaterEqual,
        kOpen,
        kClose,
        kEnd,
    };

    Kind kind = Kind::kEnd;
    std::size_t column = 1;
    std::string text;  // Of a word, without quotes; a gap is a '*'.
    // Of a word: what stands between its gaps. At least one; more when it has gaps.
    std::vector<std::string> pieces;
    bool has_quotes = false;

    bool has_gaps() const { return pieces.size() > 1; }
    // What people wrote, for messages.
    std::string shown() const;
};

// The tokens of a rule, of which the last is kEnd.
std::expected<std::vector<RuleToken>, RuleMistake> split_rule(std::string_view text);

// A word that reads back to these pieces.
std::string rule_word(const std::vector<std::string>& pieces);

}  // namespace fopd::lrs
