#include "lrs/tbf/rule_set.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::lrs {

static_assert(kRuleFileBytesMax > (kRulesMax + 1) * (kRuleBytesMax + 1));

const RuleGrammar<Rule> kTbfGrammar{
    .parse = parse_rule,
    .parse_change = parse_change,
    .plain_default = "default * rate=unlimited",
    .keep_default = "change it to rate=unlimited, which limits nothing"};

const Rule* RuleSet::find(std::uint64_t id) const {
    const auto rule = std::ranges::find(rules_, id, &Rule::id);
    return rule == rules_.end() ? nullptr : &*rule;
}

RuleRevisions::RuleRevisions(std::uint64_t version) {
    ENSURE(version > 0);
    const auto none = std::make_shared<RuleSet>();
    none->version_ = version - 1;
    current_ = none;
    const auto loaded = load({}, Instant{});
    ENSURE(loaded.has_value());
}

RuleRevisions::Edited RuleRevisions::load(std::span<const std::string> rules, Instant now) {
    std::vector<RuleLine> lines;
    for (const std::string& rule : rules) lines.push_back({lines.size() + 1, rule});
    auto read = read_rules<Rule>(lines, parse_rule);
    if (!read) return std::unexpected(std::move(read.error()));
    return put_in_force(*std::move(read), now);
}

RuleRevisions::Edited RuleRevisions::apply(const RuleEdit& edit, Instant now) {
    auto edited = edited_rules(*current_, edit, kTbfGrammar);
    if (!edited) return std::unexpected(std::move(edited.error()));
    return put_in_force(*std::move(edited), now);
}

void RuleRevisions::settle(Rule& rule, const Rule* old, Instant now) {
    KeyedHash terms({});
    terms.add(rule.text());
    rule.terms = static_cast<std::uint32_t>(terms.result().low);
    const bool is_same = old != nullptr && rule.has_same_classes_as(*old);
    rule.id = is_same ? old->id : ++last_id_;
    settle_all(rule, is_same ? old : nullptr, now);
    if (is_same && old->limits == rule.limits) {
        rule.limits_id = old->limits_id;
        rule.paces = old->paces;
        rule.own_bucket = old->own_bucket;
        return;
    }
    rule.limits_id = ++last_id_;
    rule.paces = Paces(rule.limits);
    const auto bucket = std::make_shared<Bucket>();
    if (is_same) {
        bucket->start(carried_over(*old->own_bucket, old->limits, rule.limits, ticks_at(now)));
        bucket->take_shares_of(*old->own_bucket);
    }
    rule.own_bucket = bucket;
}

// Sets up the bucket of all classes. `old` is the same rule before the change, if it existed.
void RuleRevisions::settle_all(Rule& rule, const Rule* old, Instant now) {
    rule.all_paces = Paces(rule.all_limits);
    if (old != nullptr && old->all_limits == rule.all_limits) {
        rule.all_bucket = old->all_bucket;
        return;
    }
    rule.all_bucket = std::make_shared<Bucket>();
    if (old == nullptr) return;
    rule.all_bucket->start(
        carried_over(*old->all_bucket, old->all_limits, rule.all_limits, ticks_at(now)));
    rule.all_bucket->take_shares_of(*old->all_bucket);
}

RuleRevisions::Edited RuleRevisions::put_in_force(std::vector<Rule> rules, Instant now) {
    if (std::ranges::find(rules, kDefaultRule, &Rule::name) == rules.end())
        rules.push_back(*parse_rule(kTbfGrammar.plain_default));
    if (auto mistake = too_much(rules)) return std::unexpected(*std::move(mistake));
    for (Rule& rule : rules) settle(rule, current_->find(rule.name), now);
    sort_by_rank(rules);
    auto next = std::make_shared<RuleSet>();
    next->version_ = current_->version() + 1;
    next->rules_ = std::move(rules);
    next->index_ = RuleIndex(next->rules_);
    current_ = std::move(next);
    return current_;
}

}  // namespace fopd::lrs
