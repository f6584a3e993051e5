#pragma once

#include <expected>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/task.h"
#include "daemon/access.h"
#include "daemon/change_turn.h"
#include "daemon/configuration.h"
#include "daemon/device_requests.h"
#include "daemon/locality_updates.h"
#include "daemon/node_access.h"
#include "daemon/node_layout.h"
#include "daemon/node_world.h"

namespace fopd::daemon {

// Reads a node's configuration again while the node runs, and applies what can change then. Lives
// on the control reactor.
class NodeReload {
public:
    // All of it outlives this.
    struct Parts {
        const NodeWorld& world;
        ChangeTurn& turn;
        NodeAccess& access;
        LocalityUpdates& updates;
        NodeLayout& layout;
        DeviceRequests& devices;
    };
    explicit NodeReload(const Parts& parts) : parts_(parts) {}

    // Waits for its turn among the changes of the node. Then applies the settings that can change
    // at run time, opens the disks that are new in the configuration, and removes those that are
    // not in it any more. Refused as busy unless the node is ready.
    struct Reloaded : Configuration::Reloaded {
        std::vector<DeviceOutcome> devices;
    };
    using Outcome = std::expected<Reloaded, Configuration::Refused>;
    Task<Outcome> run();

private:
    Outcome reload_settings(DeviceRequests::Plan* plan);
    // Loads the access rules that `next` names. Returns what keeps the running node from following
    // `next`; nothing if it can.
    std::vector<std::string> check(const config::Snapshot& next, AccessPtr* access) const;
    void apply(AccessPtr access);
    void report(const Configuration::Reloaded& reloaded) const;

    const Parts parts_;
};

}  // namespace fopd::daemon
