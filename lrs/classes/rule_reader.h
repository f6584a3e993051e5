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

// The option words of a policy's rules.
struct RuleOptions {
    std::string_view policy{};
    std::span<const std::string_view> words{};
};
inline constexpr std::array<std::string_view, 7> kTbfWords{"rate",  "each", "burst", "all",
                                                           "scope", "rank", "by"};
inline constexpr std::array<std::string_view, 6> kMclockWords{"reservation", "weight", "limit",
                                                              "soft_limit",  "rank",   "by"};
inline constexpr std::array<std::string_view, 3> kGroupWords{"weight", "rank", "by"};
// For all policies, so that a message can name the policy an option belongs to.
inline constexpr RuleOptions kTbfOptions{.policy = "tbf", .words = kTbfWords};
inline constexpr RuleOptions kMclockOptions{.policy = "mclock", .words = kMclockWords};
inline constexpr RuleOptions kGroupOptions{.policy = "epoch_groups", .words = kGroupWords};
inline constexpr std::array kRuleOptions{kMclockOptions, kTbfOptions, kGroupOptions};

// The highest weight of a class.
inline constexpr std::uint32_t kWeightMax = 1000;

// Parses the parts of rules that all policies share, one after the other: docs/formats/rules.md.
// The read functions return false after recording a mistake.
class RuleReader {
public:
    using Kind = RuleToken::Kind;
    // If the text could not be split into tokens, only failed() may be called.
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
    // Returns the current token and advances.
    const RuleToken& next();
    bool take(Kind kind);
    bool expect(Kind kind, const char* right);
    bool read_plain_word(const char* right);
    bool read_size(const RuleToken& token, std::uint64_t& size);
    bool add_value(Key key, const RuleToken& token, Test::Values& values, std::string& text);
    // Reads one word, or several in braces; `read` takes the current word. Braces and blanks are
    // appended to `text`.
    template <typename Read>
    bool read_list(std::string& text, Read read);

    // -- parts of a rule --

    // Reads the name and the expression of a rule, or of a change of `old`, which may leave out the
    // expression.
    template <typename Rule>
    bool read_begin(Rule& rule, const Rule* old) {
        if (!is_split()) return false;
        if (old != nullptr) rule = *old;
        if (!read_name(rule.name)) return false;
        return (old != nullptr && !begins_expression()) || read_expression(rule);
    }
    bool read_name(std::string& name);
    // Whether the current token is neither the end nor an option.
    bool begins_expression() const { return !at_end() && !is_option(here()); }
    // Sets the rule's expression, its text, and the default classes_by.
    bool read_expression(ClassRule& rule);
    bool read_key(Key& key);
    // Reads an option's word and its sign. The returned token stays valid.
    const RuleToken* read_option_word(const char* right);
    // Reads the value of an option that may be there once, with one of the functions below.
    template <typename Value>
    bool read_once(const RuleToken& word, std::optional<Value>& value,
                   bool (RuleReader::*read)(Value&)) {
        return value ? fail_double(word) : (this->*read)(value.emplace());
    }
    // Read the value after "rank=", "weight=" and "by=".
    bool read_rank(std::uint32_t& rank);
    bool read_weight(std::uint32_t& weight);
    bool read_classes(KeySet& keys);
    // Checks that a rule named default matches everything. REQUIRES: the rule was read.
    bool check_default(const ClassRule& rule, const char* example);

private:
    bool is_option(const RuleToken& token) const;
    // Records a mistake and returns true if the token is an option of another policy's rules.
    bool fail_foreign(const RuleToken& token);
    bool read_conjunction(ClassRule& rule);
    bool read_test(Conjunction& conjunction, std::string& text);
    bool read_comparison(const RuleToken& sign, Test::Values& values, std::string& text);
    bool read_number(std::uint32_t& number, std::uint32_t min, std::uint32_t max);
    bool open_list(std::size_t& column, std::string& text);
    // The next item of a list: a word or the list's end.
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
