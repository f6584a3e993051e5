#include "daemon/locality_updates.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/locality_messages.h"
#include "eh/settings.h"

namespace fopd::daemon {

namespace {

std::uint32_t members_of(const eh::EpochSettings& settings) {
    if (settings.kind == eh::EpochSettings::Kind::kLocal) return 1;
    // The members of an open cluster are not in the configuration.
    return std::max(settings.expect, static_cast<std::uint32_t>(settings.members.size()));
}

}  // namespace

LocalityUpdates::LocalityUpdates(const Parts& parts) : parts_(parts) {}

LocalityUpdates::~LocalityUpdates() = default;

void LocalityUpdates::add(Locality& locality) {
    updates_.push_back(std::make_unique<Update>(parts_.control, locality));
}

LiveSettings LocalityUpdates::settings() const {
    const config::Snapshot& settings = *parts_.configuration.current();
    const auto& policy = settings.get<lrs::LrsSettings>();
    const auto& log = settings.get<LogSettings>();
    parts_.policies.set_cluster({.key = parts_.access.current()->class_key,
                                 .localities = static_cast<std::uint32_t>(updates_.size()),
                                 .members = members_of(settings.get<eh::EpochSettings>())});
    lrs::PolicyShare share = policy.share(parts_.policies, parts_.control.now());
    std::vector<std::string> rules;
    if (policy.decides().rule_book != nullptr) rules = parts_.lrs.rules()->names();
    parts_.classes.set_rules(rules);
    return {.limits = {.max_foms = policy.max_foms,
                       .io_wait_goal = policy.io_wait_goal,
                       .slow_fop = log.slow_fop,
                       .audit_changes = log.audit_changes},
            .policy = policy.for_localities(),
            .share = std::move(share),
            .io = settings.get<io_sched::IoSchedSettings>(),
            .access = parts_.access.current()};
}

void LocalityUpdates::send() {
    const LiveSettings settings = this->settings();
    for (const auto& update : updates_) update->send(settings);
}

}  // namespace fopd::daemon
