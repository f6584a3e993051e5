#pragma once

#include <algorithm>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/ordered_rules.h"
#include "lrs/classes/rule_edit.h"
#include "lrs/classes/rule_index.h"
#include "lrs/classes/rule_mistakes.h"
#include "lrs/classes/rule_reader.h"

namespace fopd::lrs {

// Collects the mistakes of a list of rules while it is read line by line.
class RuleListCheck {
public:
    // Further mistakes are only counted.
    static constexpr std::size_t kMistakesMax = 100;

    void fail(std::size_t line, RuleMistake mistake);
    // Adds a rule that was parsed.
    void add(std::size_t line, const ClassRule& rule);
    bool is_good() const { return mistakes_.empty(); }
    RuleMistakes mistakes() &&;

private:
    RuleMistakes mistakes_;
    std::size_t more_ = 0;  // Mistakes beyond kMistakesMax.
    std::size_t more_line_ = 0;
    std::map<std::string, std::size_t> line_of_;  // The line of each rule, by name.
    std::size_t count_ = 0;                       // Rules, not counting the default rule.
    RuleSum sum_;
    bool is_too_much_ = false;
};

// The rules in the order of the lines, or all mistakes.
template <typename AnyRule, typename Parse>
std::expected<std::vector<AnyRule>, RuleMistakes> read_rules(std::span<const RuleLine> lines,
                                                             Parse parse) {
    std::vector<AnyRule> rules;
    RuleListCheck check;
    for (const RuleLine& line : lines) {
        std::expected<AnyRule, RuleMistake> parsed = parse(line.text);
        if (!parsed) {
            check.fail(line.number, std::move(parsed.error()));
            continue;
        }
        check.add(line.number, *parsed);
        // Rules beyond the limit are parsed for their mistakes, but not kept.
        if (rules.size() <= kRulesMax) rules.push_back(*std::move(parsed));
    }
    if (!check.is_good()) return std::unexpected(std::move(check).mistakes());
    return rules;
}

// How the rules of one policy are parsed and changed by hand.
template <typename AnyRule>
struct RuleGrammar {
    std::expected<AnyRule, RuleMistake> (*parse)(std::string_view text);
    // "NAME [EXPRESSION] [OPTION=…] …": parts not given stay as in `old`.
    std::expected<AnyRule, RuleMistake> (*parse_change)(std::string_view text, const AnyRule& old);
    std::string_view plain_default;  // The default rule if none is given.
    std::string_view keep_default;   // The advice if the default rule would be removed.
};

// The rules of a file, or all mistakes.
template <typename AnyRule>
std::expected<std::vector<AnyRule>, RuleMistakes> read_rules(std::string_view file,
                                                             const RuleGrammar<AnyRule>& grammar) {
    if (file.size() > kRuleFileBytesMax) return std::unexpected(too_many_rules());
    return read_rules<AnyRule>(rule_lines(file), grammar.parse);
}

// The rules after a change by hand; the caller sorts them by rank.
template <typename AnyRule>
std::expected<std::vector<AnyRule>, RuleMistakes> edited_rules(
    const OrderedRulesOf<AnyRule>& before, const RuleEdit& edit,
    const RuleGrammar<AnyRule>& grammar) {
    if (edit.only_at && *edit.only_at != before.version())
        return std::unexpected(other_version(before.version(), *edit.only_at));
    if (edit.verb == RuleEdit::Verb::kLoad) return read_rules(edit.text, grammar);
    std::vector<AnyRule> rules = before.rules();
    if (edit.verb == RuleEdit::Verb::kAdd) {
        auto parsed = grammar.parse(edit.text);
        if (!parsed) return std::unexpected(std::move(parsed.error()));
        if (before.find(parsed->name) != nullptr) return std::unexpected(double_rule(parsed->name));
        rules.push_back(*std::move(parsed));
        return rules;
    }
    std::string name(edit.text);
    if (edit.verb == RuleEdit::Verb::kChange) {
        const auto named = parse_rule_name(edit.text);
        if (!named) return std::unexpected(named.error());
        name = *named;
    }
    const auto old = std::ranges::find(rules, name, &AnyRule::name);
    if (old == rules.end()) return std::unexpected(unknown_rule(name, before.names()));
    if (edit.verb == RuleEdit::Verb::kDel) {
        if (name == kDefaultRule) {
            return std::unexpected(RuleMistake{.wrong = "the rule default cannot be removed",
                                               .right = std::string(grammar.keep_default)});
        }
        rules.erase(old);
        return rules;
    }
    auto parsed = grammar.parse_change(edit.text, *old);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    const bool has_same_rank = parsed->rank == old->rank;
    *old = *std::move(parsed);
    if (!has_same_rank) std::rotate(old, old + 1, rules.end());
    return rules;
}

// The rules' texts for the configuration, without an implicit default rule.
template <typename AnyRule>
std::vector<std::string> texts_of(const std::vector<AnyRule>& rules,
                                  const RuleGrammar<AnyRule>& grammar) {
    std::vector<std::string> texts;
    for (const AnyRule& rule : rules) {
        std::string text = rule.text();
        if (text != grammar.plain_default) texts.push_back(std::move(text));
    }
    return texts;
}

// Checks the limits for rules that were parsed one by one.
template <typename Rules>
std::optional<RuleMistake> too_much(const Rules& rules) {
    if (rules.size() > kRulesMax + 1) return too_many_rules();
    RuleSum sum;
    for (const ClassRule& rule : rules) {
        if (auto mistake = sum.add(rule.expression)) return mistake;
    }
    return std::nullopt;
}

}  // namespace fopd::lrs
