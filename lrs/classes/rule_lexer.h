#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fopd::lrs {

// A mistake in a rule: where it is, and how to correct it.
struct RuleMistake {
    std::size_t line = 0;    // In a file or list of rules, from 1; 0: a single rule.
    std::size_t column = 1;  // In characters, from 1; 0: not about a particular rule.
    std::string wrong;
    std::string right;
    bool is_unknown_rule = false;  // The rule to change or to remove does not exist.
};
// "line 3, column 12: what is wrong; how to correct it".
std::string to_string(const RuleMistake& mistake);

// The mistakes of one rule or of several, in the order of their lines.
class RuleMistakes : public std::vector<RuleMistake> {
public:
    RuleMistakes() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): one mistake is a list of mistakes.
    RuleMistakes(RuleMistake only) { push_back(std::move(only)); }
};
// One mistake per line.
std::string to_string(const RuleMistakes& mistakes);

// The longest rule.
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
    std::string text;  // The text of a word, without quotes; gaps are written as '*'.
    // The texts between the gaps of a word that has gaps.
    std::vector<std::string> literals;
    bool has_quotes = false;

    bool has_gaps() const { return !literals.empty(); }
    // The token as the user wrote it, for messages.
    std::string shown() const;
};

// The tokens of a rule; the last is kEnd.
std::expected<std::vector<RuleToken>, RuleMistake> split_rule(std::string_view text);

// Appends a word that parses to this text, or to these literals with gaps between them.
void append_rule_word(std::string& to, std::string_view text);
void append_rule_word(std::string& to, const std::vector<std::string>& literals);

}  // namespace fopd::lrs
