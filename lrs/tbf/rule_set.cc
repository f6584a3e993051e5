#include "lrs/tbf/rule_set.h"

#include <algorithm>
#include <map>
#include <utility>

#include "config/nearest.h"
#include "config/problem.h"
#include "core/ensure.h"

namespace fopd::lrs {

namespace {

// A file of rules: as many as there may be, each as long as it may be.
constexpr std::size_t kLineBytesMax = kRuleBytesMax + 1;

RuleMistake set_mistake(std::string wrong, std::string right) {
    return RuleMistake{.wrong = std::move(wrong), .right = std::move(right)};
}

RuleMistake unknown_rule(std::string_view name, const RuleSet& rules) {
    std::vector<std::string> names;
    for (const Rule& rule : rules.rules()) names.push_back(rule.name);
    const auto near = config::nearest(name, names);
    return set_mistake("there is no rule " + config::in_quotes(name),
                       near ? "did you mean " + *near + "?" : "list the rules to see their names");
}

RuleMistake double_rule(std::string_view name) {
    return set_mistake("there is a rule " + config::in_quotes(name) + " already",
                       "give it another name, or change the one there is");
}

RuleMistake too_many_rules() {
    return set_mistake("there are more than 1024 rules", "let rules have lists of values");
}

}  // namespace

const Rule& RuleSet::rule_for(const RequestAttributes& attributes) const {
    for (const Rule& rule : rules_) {
        if (rule.matches(attributes)) return rule;
    }
    ensure_failed("a default rule", __FILE__, __LINE__);
}

const Rule* RuleSet::find(std::string_view name) const {
    const auto rule = std::ranges::find(rules_, name, &Rule::name);
    return rule == rules_.end() ? nullptr : &*rule;
}

const Rule* RuleSet::find(std::uint64_t id) const {
    const auto rule = std::ranges::find(rules_, id, &Rule::id);
    return rule == rules_.end() ? nullptr : &*rule;
}

RuleBook::RuleBook() : current_(std::make_shared<RuleSet>()) {
    const auto loaded = load({}, {.now = Instant{}});
    ENSURE(loaded.has_value());
}

RuleBook::Edited RuleBook::add(std::string_view rule, const Edit& edit) {
    if (auto why = refused(edit)) return std::unexpected(*std::move(why));
    auto parsed = parse_rule(rule);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    if (current_->find(parsed->name) != nullptr) return std::unexpected(double_rule(parsed->name));
    std::vector<Rule> rules = current_->rules();
    if (rules.size() > RuleSet::kRulesMax) return std::unexpected(too_many_rules());
    settle(*parsed, nullptr, edit.now);
    rules.insert(rules.end() - 1, *std::move(parsed));
    return put_in_force(std::move(rules));
}

RuleBook::Edited RuleBook::change(std::string_view change, const Edit& edit) {
    if (auto why = refused(edit)) return std::unexpected(*std::move(why));
    const auto name = parse_rule_name(change);
    if (!name) return std::unexpected(name.error());
    const Rule* const old = current_->find(*name);
    if (old == nullptr) return std::unexpected(unknown_rule(*name, *current_));
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
    if (old == nullptr) return std::unexpected(unknown_rule(name, *current_));
    if (old->name == kDefaultRule) {
        return std::unexpected(set_mistake("the rule default cannot be removed",
                                           "change it to rate=unlimited, then it limits nobody"));
    }
    std::vector<Rule> rules = current_->rules();
    rules.erase(rules.begin() + (old - current_->rules().data()));
    return put_in_force(std::move(rules));
}

RuleBook::Edited RuleBook::load(std::span<const std::string> rules, const Edit& edit) {
    std::vector<Line> lines;
    for (const std::string& rule : rules) lines.push_back({lines.size() + 1, rule});
    return load_lines(lines, edit);
}

RuleBook::Edited RuleBook::load_text(std::string_view text, const Edit& edit) {
    std::vector<Line> lines;
    std::size_t number = 0;
    if (text.size() > (RuleSet::kRulesMax + 1) * kLineBytesMax) {
        return std::unexpected(too_many_rules());
    }
    while (!text.empty()) {
        ++number;
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t start = line.find_first_not_of(' ');
        if (start == std::string_view::npos || line[start] == '#') continue;
        lines.push_back({number, line});
    }
    return load_lines(lines, edit);
}

RuleBook::Edited RuleBook::load_lines(std::span<const Line> lines, const Edit& edit) {
    if (auto why = refused(edit)) return std::unexpected(*std::move(why));
    const auto at_line = [](RuleMistake what, const Line& line) {
        what.line = line.number;
        return std::unexpected(std::move(what));
    };
    std::vector<Rule> rules;
    std::optional<Rule> last;
    std::map<std::string, std::size_t> seen;  // The line of each name.
    for (const Line& line : lines) {
        auto parsed = parse_rule(line.text);
        if (!parsed) return at_line(std::move(parsed.error()), line);
        if (!seen.try_emplace(parsed->name, line.number).second) {
            return at_line(double_rule(parsed->name), line);
        }
        const bool is_last = parsed->name == kDefaultRule;
        if (!is_last && rules.size() == RuleSet::kRulesMax) return at_line(too_many_rules(), line);
        if (is_last) {
            last = *std::move(parsed);
        } else {
            rules.push_back(*std::move(parsed));
        }
    }
    if (!last) last = *parse_rule(kUnlimitedDefault);
    rules.push_back(*std::move(last));
    for (Rule& rule : rules) settle(rule, current_->find(rule.name), edit.now);
    return put_in_force(std::move(rules));
}

std::optional<RuleMistake> RuleBook::refused(const Edit& edit) const {
    if (!edit.only_at || *edit.only_at == current_->version()) return std::nullopt;
    return set_mistake("the rules have version " + std::to_string(current_->version()) + ", not " +
                           std::to_string(*edit.only_at),
                       "somebody has changed them; look at them again");
}

void RuleBook::settle(Rule& rule, const Rule* old, Instant now) {
    const bool is_same = old != nullptr && rule.has_same_classes_as(*old);
    rule.id = is_same ? old->id : ++last_id_;
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

RuleBook::Edited RuleBook::put_in_force(std::vector<Rule> rules) {
    sort_by_rank(rules);
    auto next = std::make_shared<RuleSet>();
    next->version_ = current_->version() + 1;
    next->rules_ = std::move(rules);
    ENSURE(next->rules_.back().name == kDefaultRule);
    current_ = std::move(next);
    return current_;
}

std::string to_text(const RuleSet& rules) {
    std::string text;
    for (const Rule& rule : rules.rules()) text += rule.text() + '\n';
    return text;
}

}  // namespace fopd::lrs
