#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fopd::lrs {

// What is wrong with a rule, where, and what would be right.
struct RuleMistake {
    std::size_t line = 0;    // Of a file or a list of rules, from 1; 0: there was one rule alone.
    std::size_t column = 1;  // Counts characters, from 1; 0: it is about no rule.
    std::string wrong;
    std::string right;
};
// "line 3, column 12: what is wrong; what would be right".
std::string to_string(const RuleMistake& mistake);

// All that is wrong with several rules, in the order of their lines; or with one.
class RuleMistakes : public std::vector<RuleMistake> {
public:
    RuleMistakes() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): one is some.
    RuleMistakes(RuleMistake only) { push_back(std::move(only)); }
};
// One a line.
std::string to_string(const RuleMistakes& mistakes);

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
    // Of a word that has gaps: what stands between them.
    std::vector<std::string> pieces;
    bool has_quotes = false;

    bool has_gaps() const { return !pieces.empty(); }
    // What people wrote, for messages.
    std::string shown() const;
};

// The tokens of a rule, of which the last is kEnd.
std::expected<std::vector<RuleToken>, RuleMistake> split_rule(std::string_view text);

// Appends a word that reads back to this text, or to these pieces with gaps between them.
void append_rule_word(std::string& to, std::string_view text);
void append_rule_word(std::string& to, const std::vector<std::string>& pieces);

}  // namespace fopd::lrs
