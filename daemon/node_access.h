#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "daemon/access.h"
#include "daemon/node_world.h"
#include "daemon/start_problem.h"
#include "fabric/transport.h"

namespace fopd::daemon {

// The access rules that are in force on a node. Lives on the control reactor.
class NodeAccess {
public:
    // Both arguments outlive this object. `addresses`: where clients may connect.
    NodeAccess(const NodeWorld& world, const std::vector<fabric::Address>& addresses)
        : world_(world), addresses_(addresses) {}

    // Loads the access rules that `next` names, which are not in force yet. Refuses a quota for a
    // pool that the node does not have now, because pools change only at a restart.
    Started<AccessPtr> load(const config::Snapshot& next) const;
    void use(AccessPtr access) { current_ = std::move(access); }
    // Null before use().
    const AccessPtr& current() const { return current_; }

    // A warning if everybody or nobody can connect; otherwise empty.
    std::string_view warning() const;
    // Reports the warning, if there is one, as an event.
    void report() const;

private:
    const NodeWorld& world_;
    const std::vector<fabric::Address>& addresses_;
    AccessPtr current_;
};

}  // namespace fopd::daemon
