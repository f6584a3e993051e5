#include "daemon/rule_warnings.h"

#include <algorithm>
#include <utility>

#include "core/printable.h"
#include "lrs/classes/ordered_rules.h"

namespace fopd::daemon {

// With auth.mode none, clients claim any name.
std::set<RuleWarnings::Warning> RuleWarnings::look() const {
    std::set<Warning> warnings;
    const AccessPtr& access = access_.current();
    if (access == nullptr || access->open_to_all) return warnings;
    const lrs::OrderedRulesPtr rules = lrs_.rules();
    const auto look_at = [&](const lrs::ClassRule& rule, const lrs::Test& test) {
        if (test.key() != lrs::Key::kPrincipal) return;
        for (const std::string& name : test.values().texts) {
            if (!access->principals.contains(name)) warnings.insert({rule.name, name});
        }
    };
    for (std::size_t i = 0; i < rules->count(); ++i) {
        for (const lrs::Conjunction& conjunction : rules->at(i).expression) {
            for (const lrs::Test& test : conjunction) look_at(rules->at(i), test);
        }
    }
    return warnings;
}

void RuleWarnings::note() {
    std::set<Warning> now = look();
    for (const Warning& each : now) {
        if (warnings_.contains(each)) continue;
        emit_each(events_, core::Level::kWarn, "daemon.rule_of_unknown_principal",
                  {{"rule", std::string_view(each.rule)},
                   {"principal", std::string_view(each.principal)}});
    }
    warnings_ = std::move(now);
}

std::string RuleWarnings::Warning::text() const {
    return "lrs rule " + rule + " names principal " + core::printable(principal) +
           ", which auth.principals does not have";
}

std::vector<std::string> RuleWarnings::all() const {
    std::vector<std::string> all;
    for (const Warning& each : warnings_) all.push_back(each.text());
    return all;
}

std::vector<std::string> RuleWarnings::about(std::string_view rule) const {
    std::vector<std::string> some;
    for (const Warning& each : warnings_) {
        if (each.rule == rule) some.push_back(each.text());
    }
    return some;
}

}  // namespace fopd::daemon
