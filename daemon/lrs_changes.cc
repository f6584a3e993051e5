#include "daemon/lrs_changes.h"

#include <algorithm>
#include <utility>

namespace fopd::daemon {

namespace {

std::unexpected<Configuration::Refused> rules_not_valid(std::vector<std::string> problems) {
    return std::unexpected(Configuration::Refused{.busy = false, .problems = std::move(problems)});
}

std::unexpected<Configuration::Refused> rules_not_valid(const lrs::RuleMistakes& mistakes) {
    std::vector<std::string> problems;
    for (const lrs::RuleMistake& each : mistakes) problems.push_back(to_string(each));
    const bool is_unknown = std::ranges::any_of(mistakes, &lrs::RuleMistake::is_unknown_rule);
    return std::unexpected(
        Configuration::Refused{.is_unknown = is_unknown, .problems = std::move(problems)});
}

}  // namespace

const lrs::LrsSettings& LrsChanges::settings() const {
    return parts_.configuration.current()->get<lrs::LrsSettings>();
}

LrsChanges::Outcome LrsChanges::set_policy(std::string_view policy,
                                           std::span<const lrs::NamedValue> values,
                                           std::optional<std::string_view> rules) {
    if (auto ready = parts_.check_ready(); !ready) return std::unexpected(std::move(ready.error()));
    lrs::LrsSettings settings = this->settings();
    if (rules) {
        const auto mistakes = lrs::set_rules(settings, policy, values, *rules);
        if (mistakes) return rules_not_valid(*mistakes);
    }
    auto next = lrs::with_policy(settings, policy, values);
    if (next) return use(*std::move(next));
    std::vector<std::string> problems;
    for (const config::Problem& each : next.error()) {
        problems.push_back(each.key + ": " + each.wrong + ", " + each.right);
    }
    return rules_not_valid(std::move(problems));
}

LrsChanges::Outcome LrsChanges::edit_rules(const lrs::RuleEdit& edit) {
    if (auto ready = parts_.check_ready(); !ready) return std::unexpected(std::move(ready.error()));
    lrs::LrsSettings next = settings();
    const auto mistakes =
        next.with_rules().rule_book(parts_.policies).edit(next, edit, parts_.control.now());
    if (mistakes) return rules_not_valid(*mistakes);
    return use(std::move(next));
}

lrs::OrderedRulesPtr LrsChanges::rules() const {
    const lrs::LrsSettings& settings = this->settings();
    return settings.with_rules().rule_book(parts_.policies).rules(settings, parts_.control.now());
}

std::string LrsChanges::class_of(const lrs::RequestAttributes& request) const {
    const lrs::LrsSettings& settings = this->settings();
    return settings.class_of(request,
                             {.share = settings.share(parts_.policies, parts_.control.now())});
}

config::Changes LrsChanges::use(lrs::LrsSettings settings) {
    config::Changes changed = parts_.configuration.set_lrs(std::move(settings));
    parts_.apply();
    for (const config::Change& each : changed) {
        emit_each(parts_.events, core::Level::kInfo, "daemon.config_changed",
                  {{"key", std::string_view(each.path)}, {"by", "hand"}});
    }
    return changed;
}

}  // namespace fopd::daemon
