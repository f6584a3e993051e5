#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/clock.h"
#include "core/metrics.h"
#include "core/reactor.h"
#include "core/task.h"
#include "daemon/configuration.h"
#include "daemon/locality.h"
#include "daemon/node_access.h"
#include "daemon/node_disks.h"
#include "daemon/store_layout.h"
#include "objects/stores.h"

namespace fopd::daemon {

// Sends the node's pools and slots to its localities, whose fops find objects by them. Lives on the
// control reactor.
class NodeLayout {
public:
    // All parts outlive the object.
    struct Parts {
        core::Reactor& control;
        const core::Clock& clock;
        const Configuration& configuration;
        const NodeDisks& disks;
        const std::vector<std::unique_ptr<Locality>>& localities;
        const NodeAccess& access;
    };
    explicit NodeLayout(const Parts& parts) : parts_(parts) {}

    // Sends the first layout; from then on fops may look for objects. Does nothing if the node has
    // no disks. REQUIRES: all present disks are open.
    Task<void> begin();
    // Sends the layout of the present disks. REQUIRES: begin() has sent the first one.
    Task<void> publish();
    // Applies the quotas that are in force now to the present layout, if there is one.
    void apply_quotas() const;

    // Null before begin(), and without disks.
    const objects::StoreLayoutPtr& current() const { return current_; }
    // The use and quotas of pools and principals. From any thread.
    void collect(core::MetricSink& sink) const;

private:
    Quotas quotas() const;
    std::shared_ptr<objects::StoreLayout> make() const;
    void add_library(Locality::Beginning& beginning) const;
    void make_current(objects::StoreLayoutPtr layout);

    const Parts parts_;
    objects::StoreLayoutPtr current_;
    mutable std::mutex shown_;
    objects::StoreLayoutPtr shown_layout_;  // current_. Held while used: shown_.
};

}  // namespace fopd::daemon
