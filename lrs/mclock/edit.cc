#include "lrs/mclock/edit.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/ensure.h"
#include "lrs/classes/rule_list.h"
#include "lrs/classes/rule_mistakes.h"
#include "lrs/classes/rule_reader.h"

namespace fopd::lrs {

namespace {

using Rules = std::vector<MclockRule>;
using Edited = std::expected<Rules, RuleMistakes>;

Edited add(Rules rules, std::string_view text) {
    auto parsed = parse_mclock_rule(text);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    if (std::ranges::find(rules, parsed->name, &MclockRule::name) != rules.end()) {
        return std::unexpected(double_rule(parsed->name));
    }
    rules.push_back(*std::move(parsed));
    return rules;
}

Edited change(Rules rules, std::string_view text) {
    const auto name = parse_rule_name(text);
    if (!name) return std::unexpected(name.error());
    const auto old = std::ranges::find(rules, *name, &MclockRule::name);
    if (old == rules.end()) return std::unexpected(unknown_rule(*name, names_of(rules)));
    auto parsed = parse_mclock_change(text, *old);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    const bool has_same_place = parsed->rank == old->rank;
    *old = *std::move(parsed);
    if (!has_same_place) std::rotate(old, old + 1, rules.end());
    return rules;
}

Edited del(Rules rules, std::string_view name) {
    const auto old = std::ranges::find(rules, name, &MclockRule::name);
    if (old == rules.end()) return std::unexpected(unknown_rule(name, names_of(rules)));
    if (old->name == kDefaultRule) {
        return std::unexpected(RuleMistake{.wrong = "the rule default cannot be removed",
                                           .right = "change it; its weight is 1 at least"});
    }
    rules.erase(old);
    return rules;
}

Edited edited(const MclockRules& rules, const RuleEdit& edit) {
    if (edit.only_at && *edit.only_at != rules.version()) {
        return std::unexpected(other_version(rules.version(), *edit.only_at));
    }
    switch (edit.verb) {
        case RuleEdit::Verb::kAdd: return add(rules.rules(), edit.text);
        case RuleEdit::Verb::kChange: return change(rules.rules(), edit.text);
        case RuleEdit::Verb::kDel: return del(rules.rules(), edit.text);
        case RuleEdit::Verb::kLoad:
            return read_rules<MclockRule>(rule_lines(edit.text), parse_mclock_rule);
    }
    ensure_failed("a verb", __FILE__, __LINE__);
}

}  // namespace

std::expected<MclockSettings, RuleMistakes> edit_mclock(const MclockSettings& settings,
                                                        const MclockRules::Ptr& rules,
                                                        const RuleEdit& edit) {
    auto changed = edited(*rules, edit);
    if (!changed) return std::unexpected(std::move(changed.error()));
    MclockSettings next = settings;
    next.rules.clear();
    for (const MclockRule& rule : *changed) {
        std::string text = rule.text();
        if (text != kPlainDefault) next.rules.push_back(std::move(text));
    }
    // They must read back, also where they are longer than what was said, and fit together.
    const auto loaded = MclockRules::load(next.rules, rules);
    if (!loaded) {
        // Their places are none in what was said.
        RuleMistake mistake = loaded.error().front();
        mistake.line = 0;
        mistake.column = 1;
        return std::unexpected(std::move(mistake));
    }
    if (auto wrong = overbooked(next, **loaded)) return std::unexpected(*std::move(wrong));
    return next;
}

}  // namespace fopd::lrs
