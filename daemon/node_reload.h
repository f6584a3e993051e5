#pragma once

#include <expected>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/counter.h"
#include "core/metrics.h"
#include "core/task.h"
#include "daemon/access.h"
#include "daemon/change_turn.h"
#include "daemon/configuration.h"
#include "daemon/device_requests.h"
#include "daemon/locality_updates.h"
#include "daemon/node_access.h"
#include "daemon/node_layout.h"
#include "daemon/node_life.h"
#include "daemon/node_world.h"
#include "daemon/rule_warnings.h"

namespace fopd::daemon {

// Reads a node's configuration again while the node runs, and applies what can change then. Lives
// on the control reactor.
class NodeReload {
public:
    // All parts outlive the object.
    struct Parts {
        const NodeWorld& world;
        ChangeTurn& turn;
        NodeAccess& access;
        RuleWarnings& rules;
        LocalityUpdates& updates;
        NodeLayout& layout;
        DeviceRequests& devices;
        const NodeLife& life;
    };
    explicit NodeReload(const Parts& parts);

    // Waits for its turn among the changes of the node. Then applies the settings that can change
    // at run time, opens the disks that are new in the configuration, and removes those that are
    // not in it any more. Refused as busy unless the node is ready.
    struct Reloaded : Configuration::Reloaded {
        config::Changes principals{};
        std::vector<DeviceOutcome> devices{};
        config::Changes for_audit() const;  // All changes, also those of principals.
    };
    using Outcome = std::expected<Reloaded, Configuration::Refused>;
    Task<Outcome> run();

    // Reads the files again that `auth` names, and applies their principals and keys. All other
    // settings stay as they are, also those that were set by hand. A node without a file of
    // principals takes up the one that its configuration names by now. Waits for no other change of
    // the node. Refused as busy unless the node serves.
    struct ReloadedKeys {
        config::Changes changes{};  // Of the files that the configuration names.
        config::Changes principals{};
        config::Changes for_audit() const;
    };
    std::expected<ReloadedKeys, Configuration::Refused> reload_keys();
    // The files of principals: the one in use, and the one that the configuration names by now.
    // Empty: none.
    struct PrincipalsFiles {
        std::string in_use;
        std::string configured;
    };
    PrincipalsFiles principals_files() const;

    // The changes that the last reload could not make, as texts for people; empty if it made all,
    // or there was none.
    const std::vector<std::string>& problems() const { return problems_; }

    // Whether the last reload made all changes, and when one last did. From any thread.
    void collect(core::MetricSink& sink) const;

private:
    void note_outcome();
    AuthSettings next_auth() const;
    Outcome reload_settings(DeviceRequests::Plan* plan);
    // Loads the access rules that `next` names. Returns the conflicts that keep the running node
    // from following `next`; none if it can.
    DeviceRequests::Conflicts check(const config::Snapshot& next, AccessPtr* access) const;
    void apply(AccessPtr access);
    void report(const Configuration::Reloaded& reloaded) const;

    const Parts parts_;
    std::vector<std::string> problems_;
    core::Counter is_successful_;  // 0 or 1.
    core::Counter succeeded_at_s_;
};

}  // namespace fopd::daemon
