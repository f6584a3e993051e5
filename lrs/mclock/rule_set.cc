#include "lrs/mclock/rule_set.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

// The most reserving rules that a message lists.
constexpr std::size_t kNamedMax = 16;

}  // namespace

const RuleGrammar<MclockRule> kMclockGrammar{.parse = parse_mclock_rule,
                                             .parse_change = parse_mclock_change,
                                             .plain_default = "default *",
                                             .keep_default = "change it; its weight is 1 at least"};

MclockRules::Loaded MclockRules::load(std::span<const std::string> rules, const Ptr& before) {
    auto set = std::make_shared<MclockRules>();
    if (before != nullptr) {
        set->last_id_ = before->last_id_;
        set->version_ = before->version_ + 1;
    }
    std::vector<RuleLine> lines;
    for (const std::string& rule : rules) lines.push_back({lines.size() + 1, rule});
    auto read = read_rules<MclockRule>(lines, parse_mclock_rule);
    if (!read) return std::unexpected(std::move(read.error()));
    set->rules_ = *std::move(read);
    set->put_in_order();
    for (MclockRule& rule : set->rules_) set->settle(rule, before.get());
    return set;
}

MclockRules::Ptr MclockRules::none(std::uint64_t version) {
    auto set = std::make_shared<MclockRules>();
    set->version_ = version;
    set->put_in_order();
    set->settle(set->rules_.front(), nullptr);
    return set;
}

void MclockRules::put_in_order() {
    if (std::ranges::find(rules_, kDefaultRule, &MclockRule::name) == rules_.end()) {
        auto parsed = parse_mclock_rule(kMclockGrammar.plain_default);
        ENSURE(parsed.has_value());
        rules_.push_back(*std::move(parsed));
    }
    sort_by_rank(rules_);
    index_ = RuleIndex(rules_);
}

void MclockRules::settle(MclockRule& rule, const MclockRules* before) {
    const MclockRule* old = before == nullptr ? nullptr : before->find(rule.name);
    if (old != nullptr && !rule.has_same_classes_as(*old)) old = nullptr;
    rule.id = old != nullptr ? old->id : ++last_id_;
    if (rule.shares.reservation) rule.reservation_pace = CostPace(*rule.shares.reservation);
    if (rule.shares.limit) rule.limit_pace = CostPace(*rule.shares.limit);
    if (old != nullptr && old->shares == rule.shares) {
        rule.limits_id = old->limits_id;
        rule.own_bucket = old->own_bucket;
        rule.reserved = old->reserved;
        return;
    }
    rule.limits_id = ++last_id_;
    rule.own_bucket = std::make_shared<Bucket>();
    if (rule.class_count > 0) rule.reserved = std::make_shared<ReservedClasses>(rule.class_count);
}

std::uint64_t MclockRules::reserved_per_second() const {
    std::uint64_t sum = 0;
    for (const MclockRule& rule : rules_)
        sum += rule.class_count * rule.shares.reservation.value_or(0);
    return sum;
}

std::string MclockRules::reservations_text() const {
    std::string text;
    std::size_t count = 0;
    for (const MclockRule& rule : rules_) {
        if (rule.class_count == 0) continue;
        if (++count > kNamedMax) continue;
        if (!text.empty()) text += ", ";
        text += rule.name + ' ';
        if (rule.class_count > 1) text += std::to_string(rule.class_count) + " x ";
        text += std::to_string(*rule.shares.reservation) + "/s";
    }
    if (count > kNamedMax) text += " and " + std::to_string(count - kNamedMax) + " more rules";
    return text;
}

}  // namespace fopd::lrs
