// Changes of the request scheduler by an administrator at run time, some of which last until the
// next reload.
#include <utility>

#include "daemon/node.h"
#include "lrs/settings.h"

namespace fopd::daemon {

namespace {

std::unexpected<Configuration::Refused> not_valid(std::vector<std::string> problems) {
    return std::unexpected(Configuration::Refused{.busy = false, .problems = std::move(problems)});
}

std::unexpected<Configuration::Refused> not_valid(const lrs::RuleMistakes& mistakes) {
    std::vector<std::string> problems;
    for (const lrs::RuleMistake& each : mistakes) problems.push_back(to_string(each));
    return not_valid(std::move(problems));
}

}  // namespace

const lrs::LrsSettings& Node::lrs_settings() const {
    return world_.configuration.current()->get<lrs::LrsSettings>();
}

Node::LrsResult Node::set_policy(std::string_view policy, std::span<const lrs::NamedValue> values,
                                 std::optional<std::string_view> rules) {
    if (auto ready = check_ready(); !ready) return std::unexpected(std::move(ready.error()));
    lrs::LrsSettings settings = lrs_settings();
    if (rules) {
        const auto mistakes = lrs::set_rules(settings, policy, values, *rules);
        if (mistakes) return not_valid(*mistakes);
    }
    auto next = lrs::with_policy(settings, policy, values);
    if (next) return use_lrs(*std::move(next));
    std::vector<std::string> problems;
    for (const config::Problem& each : next.error()) {
        problems.push_back(each.key + ": " + each.wrong + ", " + each.right);
    }
    return not_valid(std::move(problems));
}

Node::LrsResult Node::edit_rules(const lrs::RuleEdit& edit) {
    if (auto ready = check_ready(); !ready) return std::unexpected(std::move(ready.error()));
    lrs::LrsSettings next = lrs_settings();
    const auto mistakes = next.with_rules().rule_book(policies_).edit(next, edit, now());
    if (mistakes) return not_valid(*mistakes);
    return use_lrs(std::move(next));
}

lrs::OrderedRulesPtr Node::rules() {
    const lrs::LrsSettings& settings = lrs_settings();
    return settings.with_rules().rule_book(policies_).rules(settings, now());
}

std::string Node::class_of(const lrs::RequestAttributes& request) {
    const lrs::LrsSettings& settings = lrs_settings();
    return settings.class_of(request, {.share = settings.share(policies_, now())});
}

std::vector<std::string> Node::use_lrs(lrs::LrsSettings settings) {
    std::vector<std::string> changed = world_.configuration.set_lrs(std::move(settings));
    apply_live_settings();
    for (const std::string& key : changed) {
        emit_each(world_.events, core::Level::kInfo, "daemon.config_changed",
                  {{"key", std::string_view(key)}, {"by", "hand"}});
    }
    return changed;
}

}  // namespace fopd::daemon
