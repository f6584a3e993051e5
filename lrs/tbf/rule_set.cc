#include "lrs/tbf/rule_set.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "lrs/classes/rule_list.h"
#include "lrs/classes/rule_mistakes.h"
#include "lrs/classes/rule_reader.h"

namespace fopd::lrs {

namespace {

static_assert(kRuleFileBytesMax > (kRulesMax + 1) * (kRuleBytesMax + 1));

// A file of rules: as many as there may be, each as long as it may be.
constexpr std::size_t kLineBytesMax = kRuleBytesMax + 1;

}  // namespace

const Rule& RuleSet::rule_for(const RequestAttributes& attributes, RuleMemo* memo) const {
    const auto first = index_.first_for(attributes, memo);
    ENSURE(first.has_value());  // The default rule at least.
    return rules_[*first];
}

const Rule* RuleSet::find(std::string_view name) const {
    const auto rule = std::ranges::find(rules_, name, &Rule::name);
    return rule == rules_.end() ? nullptr : &*rule;
}

const Rule* RuleSet::find(std::uint64_t id) const {
    const auto rule = std::ranges::find(rules_, id, &Rule::id);
    return rule == rules_.end() ? nullptr : &*rule;
}

RuleBook::RuleBook(std::uint64_t version) {
    ENSURE(version > 0);
    const auto none = std::make_shared<RuleSet>();
    none->version_ = version - 1;
    current_ = none;
    const auto loaded = load({}, {.now = Instant{}});
    ENSURE(loaded.has_value());
}

RuleBook::Edited RuleBook::add(std::string_view rule, const Edit& edit) {
    if (auto why = refused(edit)) return std::unexpected(*std::move(why));
    auto parsed = parse_rule(rule);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    if (current_->find(parsed->name) != nullptr) return std::unexpected(double_rule(parsed->name));
    std::vector<Rule> rules = current_->rules();
    settle(*parsed, nullptr, edit.now);
    rules.insert(rules.end() - 1, *std::move(parsed));
    return put_in_force(std::move(rules));
}

RuleBook::Edited RuleBook::change(std::string_view change, const Edit& edit) {
    if (auto why = refused(edit)) return std::unexpected(*std::move(why));
    const auto name = parse_rule_name(change);
    if (!name) return std::unexpected(name.error());
    const Rule* const old = current_->find(*name);
    if (old == nullptr) return std::unexpected(unknown_rule(*name, names_of(current_->rules())));
    auto parsed = parse_change(change, *old);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    settle(*parsed, old, edit.now);
    std::vector<Rule> rules = current_->rules();
    const auto place = rules.begin() + (old - current_->rules().data());
    if (parsed->rank == old->rank) {
        *place = *std::move(parsed);
    } else {
        rules.erase(place);
        rules.insert(rules.end() - 1, *std::move(parsed));
    }
    return put_in_force(std::move(rules));
}

RuleBook::Edited RuleBook::del(std::string_view name, const Edit& edit) {
    if (auto why = refused(edit)) return std::unexpected(*std::move(why));
    const Rule* const old = current_->find(name);
    if (old == nullptr) return std::unexpected(unknown_rule(name, names_of(current_->rules())));
    if (old->name == kDefaultRule) {
        return std::unexpected(
            RuleMistake{.wrong = "the rule default cannot be removed",
                        .right = "change it to rate=unlimited, then it limits nobody"});
    }
    std::vector<Rule> rules = current_->rules();
    rules.erase(rules.begin() + (old - current_->rules().data()));
    return put_in_force(std::move(rules));
}

RuleBook::Edited RuleBook::load(std::span<const std::string> rules, const Edit& edit) {
    std::vector<RuleLine> lines;
    for (const std::string& rule : rules) lines.push_back({lines.size() + 1, rule});
    return load_lines(lines, edit);
}

RuleBook::Edited RuleBook::load_text(std::string_view text, const Edit& edit) {
    if (text.size() > (kRulesMax + 1) * kLineBytesMax) {
        return std::unexpected(too_many_rules());
    }
    return load_lines(rule_lines(text), edit);
}

RuleBook::Edited RuleBook::apply(const RuleEdit& edit, Instant now) {
    const Edit when{.now = now, .only_at = edit.only_at};
    switch (edit.verb) {
        case RuleEdit::Verb::kAdd: return add(edit.text, when);
        case RuleEdit::Verb::kChange: return change(edit.text, when);
        case RuleEdit::Verb::kDel: return del(edit.text, when);
        case RuleEdit::Verb::kLoad: return load_text(edit.text, when);
    }
    ensure_failed("a verb", __FILE__, __LINE__);
}

RuleBook::Edited RuleBook::load_lines(std::span<const RuleLine> lines, const Edit& edit) {
    if (auto why = refused(edit)) return std::unexpected(*std::move(why));
    auto read = read_rules<Rule>(lines, parse_rule);
    if (!read) return std::unexpected(std::move(read.error()));
    std::vector<Rule> rules = *std::move(read);
    if (std::ranges::find(rules, kDefaultRule, &Rule::name) == rules.end())
        rules.push_back(*parse_rule(kUnlimitedDefault));
    for (Rule& rule : rules) settle(rule, current_->find(rule.name), edit.now);
    return put_in_force(std::move(rules));
}

std::optional<RuleMistake> RuleBook::refused(const Edit& edit) const {
    if (!edit.only_at || *edit.only_at == current_->version()) return std::nullopt;
    return other_version(current_->version(), *edit.only_at);
}

void RuleBook::settle(Rule& rule, const Rule* old, Instant now) {
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
    }
    rule.own_bucket = bucket;
}

// The bucket of all its classes. `old` is the rule they are of, if it was there before.
void RuleBook::settle_all(Rule& rule, const Rule* old, Instant now) {
    rule.all_paces = Paces(rule.all_limits);
    if (old != nullptr && old->all_limits == rule.all_limits) {
        rule.all_bucket = old->all_bucket;
        return;
    }
    rule.all_bucket = std::make_shared<Bucket>();
    if (old == nullptr) return;
    rule.all_bucket->start(
        carried_over(*old->all_bucket, old->all_limits, rule.all_limits, ticks_at(now)));
}

RuleBook::Edited RuleBook::put_in_force(std::vector<Rule> rules) {
    if (auto mistake = too_much(rules)) return std::unexpected(*std::move(mistake));
    sort_by_rank(rules);
    auto next = std::make_shared<RuleSet>();
    next->version_ = current_->version() + 1;
    next->rules_ = std::move(rules);
    next->index_ = RuleIndex(next->rules_);
    current_ = std::move(next);
    return current_;
}

std::string to_text(const RuleSet& rules) {
    std::string text;
    for (const Rule& rule : rules.rules()) text += rule.text() + '\n';
    return text;
}

}  // namespace fopd::lrs
