#pragma once

#include <array>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

// The options that the rules of a policy have.
struct RuleOptions {
    std::string_view policy{};
    std::span<const std::string_view> words{};
};
inline constexpr std::array<std::string_view, 6> kTbfWords{"rate", "each", "burst",
                                                           "all",  "rank", "by"};
inline constexpr std::array<std::string_view, 6> kMclockWords{"reservation", "weight", "limit",
                                                              "soft_limit",  "rank",   "by"};
// Of all policies: who writes an option of another one is told whose it is.
inline constexpr RuleOptions kTbfOptions{.policy = "tbf", .words = kTbfWords};
inline constexpr RuleOptions kMclockOptions{.policy = "mclock", .words = kMclockWords};
inline constexpr std::array kRuleOptions{kMclockOptions, kTbfOptions};

// Reads the parts that the rules of all policies have, one after the other: docs/formats/rules.md.
// What reads says whether it was there; if not, there is a mistake.
class RuleReader {
public:
    using Kind = RuleToken::Kind;
    // Without one nothing is to be read but failed().
    explicit RuleReader(std::string_view text, const RuleOptions& options = {});

    bool is_split() const { return !mistake_; }
    std::unexpected<RuleMistake> failed() { return std::unexpected(*std::move(mistake_)); }
    bool fail(std::size_t column, std::string wrong, std::string right);
    bool fail_double(const RuleToken& token) {
        return fail(token.column, token.shown() + " is there twice", "write it once");
    }

    // -- tokens --

    const RuleToken& here() const { return tokens_[position_]; }
    bool at_end() const { return here().kind == Kind::kEnd; }
    // What was here.
    const RuleToken& next();
    bool take(Kind kind);
    bool expect(Kind kind, const char* right);
    bool read_plain_word(const char* right);
    bool read_size(const RuleToken& token, std::uint64_t& size);
    bool add_value(Key key, const RuleToken& token, Test::Values& values, std::string& text);
    // One, or several in braces; `read` takes the word here. `text` gets the braces and blanks.
    template <typename Read>
    bool read_list(std::string& text, Read read);

    // -- parts of a rule --

    bool read_name(std::string& name);
    // Neither at the end nor at an option.
    bool begins_expression() const { return !at_end() && !is_option(here()); }
    // Into the rule, also its text and what classes are divided by when nobody says.
    bool read_expression(ClassRule& rule);
    bool read_key(Key& key);
    // The word of an option and its sign. The word stays where it is.
    const RuleToken* read_option_word(const char* right);
    // What may follow "rank=" and "by=".
    bool read_rank(std::uint32_t& rank);
    bool read_classes(KeySet& keys);
    // That the rule default is for everything. Requires: the rule was read.
    bool check_default(const ClassRule& rule, const char* example);

private:
    bool is_option(const RuleToken& token) const;
    // Whether it is one of another policy's rules, which is a mistake then.
    bool fail_foreign(const RuleToken& token);
    bool read_conjunction(ClassRule& rule);
    bool read_test(Conjunction& conjunction, std::string& text);
    bool read_comparison(const RuleToken& sign, Test::Values& values, std::string& text);
    bool open_list(std::size_t& column, std::string& text);
    // Whether there is another word in a list, or its end.
    enum class Item : std::uint8_t { kWord, kEnd, kMistake };
    Item next_item(std::size_t list_column, bool is_first, std::string& text);

    const RuleOptions options_;
    std::vector<RuleToken> tokens_;
    std::size_t position_ = 0;
    std::optional<RuleMistake> mistake_;
};

// The name at the start of a text.
std::expected<std::string, RuleMistake> parse_rule_name(std::string_view text);

template <typename Read>
bool RuleReader::read_list(std::string& text, Read read) {
    if (here().kind == Kind::kWord) return read();
    std::size_t column = 0;
    if (!open_list(column, text)) return false;
    for (bool is_first = true;; is_first = false) {
        const Item item = next_item(column, is_first, text);
        if (item != Item::kWord) return item == Item::kEnd;
        if (!read()) return false;
    }
}

}  // namespace fopd::lrs
