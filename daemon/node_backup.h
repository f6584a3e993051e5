#pragma once

#include <memory>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "daemon/locality.h"
#include "daemon/node_disks.h"
#include "daemon/store_backup.h"
#include "devices/label.h"
#include "objects/name_parts.h"

namespace fopd::daemon {

// Shows to a backup what a node keeps beside its disks: the table of slots, the indexes of the
// disks that are present, and the names. Lives on the control reactor.
class NodeBackup {
public:
    // All of it stays as it is until write() has ended.
    struct Parts {
        core::Reactor& control;
        devices::NodeId node{};
        const NodeDisks& disks;
        const std::vector<std::unique_ptr<Locality>>& localities;
        objects::NameParts& names;
    };
    explicit NodeBackup(const Parts& parts) : parts_(parts) {}

    Task<Result<void>> write(StoreBackup* backup);

private:
    Task<Result<void>> back_up_disks(StoreBackup* backup);
    Task<Result<void>> back_up_names(StoreBackup* backup);

    const Parts parts_;
};

}  // namespace fopd::daemon
