#pragma once

#include <memory>
#include <vector>

#include "core/reactor.h"
#include "daemon/class_ledger.h"
#include "daemon/configuration.h"
#include "daemon/locality.h"
#include "daemon/lrs_changes.h"
#include "daemon/node_access.h"

namespace fopd::daemon {

class Update;

// Sends the settings that can change at run time to all localities of a node. Lives on the control
// reactor.
class LocalityUpdates {
public:
    // All of it outlives the updates.
    struct Parts {
        core::Reactor& control;
        const Configuration& configuration;
        lrs::PolicyNode& policies;
        const LrsChanges& lrs;
        const NodeAccess& access;
        ClassLedger& classes;
    };
    explicit LocalityUpdates(const Parts& parts);
    ~LocalityUpdates();
    LocalityUpdates(const LocalityUpdates&) = delete;
    LocalityUpdates& operator=(const LocalityUpdates&) = delete;

    // Called for all localities, before send().
    void add(Locality& locality);
    // The settings that are in force now. Also tells the class ledger the names of their rules.
    LiveSettings settings() const;
    // Sends the settings that are in force now, and does not wait for the localities to take them.
    void send();

private:
    const Parts parts_;
    std::vector<std::unique_ptr<Update>> updates_;
};

}  // namespace fopd::daemon
