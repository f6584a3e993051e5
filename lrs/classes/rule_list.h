#pragma once

#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/rule_edit.h"
#include "lrs/classes/rule_index.h"
#include "lrs/classes/rule_mistakes.h"

namespace fopd::lrs {

// All that is wrong with a list of rules, as it is read line by line.
class RuleListCheck {
public:
    // What else was found is counted.
    static constexpr std::size_t kMistakesMax = 100;

    void fail(std::size_t line, RuleMistake mistake);
    // A rule that was read.
    void add(std::size_t line, const ClassRule& rule);
    bool is_good() const { return mistakes_.empty(); }
    RuleMistakes mistakes() &&;

private:
    RuleMistakes mistakes_;
    std::size_t more_ = 0;  // Beyond those.
    std::size_t more_line_ = 0;
    std::map<std::string, std::size_t> line_of_;  // Of each name.
    std::size_t count_ = 0;                       // Besides the default rule.
    RuleSum sum_;
    bool is_too_much_ = false;
};

// The rules, in the order of the lines: all, or all that is wrong with them.
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
        // What is beyond that is read to see what is wrong with it, and not kept.
        if (rules.size() <= kRulesMax) rules.push_back(*std::move(parsed));
    }
    if (!check.is_good()) return std::unexpected(std::move(check).mistakes());
    return rules;
}

// Of rules that were read one by one.
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
