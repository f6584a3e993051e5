#include "lrs/epoch_groups/rule_set.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/ensure.h"

namespace fopd::lrs {

const RuleGrammar<GroupRule> kGroupGrammar{
    .parse = parse_group_rule,
    .parse_change = parse_group_change,
    .plain_default = "default * by=job",
    .keep_default = "change it to by=none; then all that it is for is one group"};

GroupRules::Loaded GroupRules::load(std::span<const std::string> rules, std::uint64_t version) {
    std::vector<RuleLine> lines;
    for (const std::string& rule : rules) lines.push_back({lines.size() + 1, rule});
    auto read = read_rules<GroupRule>(lines, parse_group_rule);
    if (!read) return std::unexpected(std::move(read.error()));
    auto set = std::make_shared<GroupRules>();
    set->version_ = version;
    set->rules_ = *std::move(read);
    if (std::ranges::find(set->rules_, kDefaultRule, &GroupRule::name) == set->rules_.end()) {
        auto parsed = parse_group_rule(kGroupGrammar.plain_default);
        ENSURE(parsed.has_value());
        set->rules_.push_back(*std::move(parsed));
    }
    sort_by_rank(set->rules_);
    // A policy is made anew for other rules, so ids need to differ within a set only.
    for (GroupRule& rule : set->rules_) {
        rule.id = static_cast<std::uint64_t>(&rule - set->rules_.data()) + 1;
    }
    set->index_ = RuleIndex(set->rules_);
    return set;
}

}  // namespace fopd::lrs
