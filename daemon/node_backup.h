#pragma once

#include <memory>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "daemon/change_turn.h"
#include "daemon/locality.h"
#include "daemon/node_disks.h"
#include "daemon/node_life.h"
#include "daemon/store_backup.h"
#include "devices/label.h"
#include "objects/name_parts.h"

namespace fopd::daemon {

// Shows to a backup a node's data beside its disks: the table of slots, the indexes of the disks
// that are present, and the names. Lives on the control reactor.
class NodeBackup {
public:
    // All parts outlive the object.
    struct Parts {
        core::Reactor& control;
        devices::NodeId node{};
        const NodeLife& life;
        ChangeTurn& turn;
        const NodeDisks& disks;
        const std::vector<std::unique_ptr<Locality>>& localities;
        const std::unique_ptr<objects::NameParts>& names;  // Null without disks.
    };
    explicit NodeBackup(const Parts& parts) : parts_(parts) {}

    // Writes the backup, which lacks changes that are in a disk's log and not in its index yet.
    // Only one backup runs at a time, and no disk is added or removed meanwhile.
    Task<Result<void>> write(StoreBackup* backup);
    // Ends a running write() early.
    void give_up();

private:
    Task<Result<void>> write_all(StoreBackup* backup);
    Task<Result<void>> back_up_disks(StoreBackup* backup);
    Task<Result<void>> back_up_names(StoreBackup* backup);

    const Parts parts_;
    StoreBackup* running_ = nullptr;  // Null unless a backup is being written.
};

}  // namespace fopd::daemon
