#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/events.h"
#include "core/reactor.h"
#include "daemon/configuration.h"
#include "lrs/settings.h"

namespace fopd::daemon {

// Changes of a node's request scheduler by an administrator at run time, which last until the next
// reload or restart. Used on the control reactor.
class LrsChanges {
public:
    struct Parts {
        core::Reactor& control;
        core::EventSink& events;
        Configuration& configuration;
        lrs::PolicyNode& policies;
        // Why nothing can be changed now, if the node is not ready.
        std::function<std::expected<void, Configuration::Refused>()> check_ready;
        // Sends the settings in force to the localities.
        std::function<void()> apply;
    };
    explicit LrsChanges(Parts parts) : parts_(std::move(parts)) {}

    // The settings that have changed. Refused as busy unless the node is ready.
    using Outcome = std::expected<config::Changes, Configuration::Refused>;
    Outcome set_policy(std::string_view policy, std::span<const lrs::NamedValue> values,
                       std::optional<std::string_view> rules = std::nullopt);
    Outcome edit_rules(const lrs::RuleEdit& edit);

    // The rules of the policy in use. If that policy has no rules: those of the policy that
    // lrs::PolicyChoice::with_rules() chooses.
    lrs::OrderedRulesPtr rules() const;
    // The name of the class to which a request with these attributes would belong.
    std::string class_of(const lrs::RequestAttributes& request) const;

private:
    // The settings in the configuration snapshot in use.
    const lrs::LrsSettings& settings() const;
    config::Changes use(lrs::LrsSettings settings);

    const Parts parts_;
};

}  // namespace fopd::daemon
