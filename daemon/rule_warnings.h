#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "daemon/lrs_changes.h"
#include "daemon/node_access.h"

namespace fopd::daemon {

// Tells administrators which rules of the request scheduler name a principal that does not exist:
// such a rule never matches, mostly because of a typing error. Lives on the control reactor.
class RuleWarnings {
public:
    // All outlive it.
    RuleWarnings(const NodeAccess& access, const LrsChanges& lrs, core::EventSink& events)
        : access_(access), lrs_(lrs), events_(events) {}

    // Looks at the rules and principals in force, and reports each new warning as an event.
    void note();

    // The warnings in words.
    std::vector<std::string> all() const;
    // Those about one rule.
    std::vector<std::string> about(std::string_view rule) const;

private:
    struct Warning {
        std::string rule;
        std::string principal;
        auto operator<=>(const Warning&) const = default;

        std::string text() const;
    };
    std::set<Warning> look() const;

    const NodeAccess& access_;
    const LrsChanges& lrs_;
    core::EventSink& events_;
    std::set<Warning> warnings_;
};

}  // namespace fopd::daemon
