#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "daemon/locality.h"
#include "daemon/node_disks.h"

namespace fopd::daemon {

// Begins and ends the checks of disks that an administrator asks for, on the localities of the
// disks. Lives on the control reactor.
class DiskChecks {
public:
    // All arguments outlive the object.
    DiskChecks(core::Reactor& control, const std::vector<std::unique_ptr<Locality>>& localities,
               const NodeDisks& disks)
        : control_(control), localities_(localities), disks_(disks) {}

    // Begins or ends a scrub of a disk. kNotFound: there is no such disk, or it is not usable;
    // kBusy: a scrub of the disk is in progress.
    Task<Result<void>> scrub(std::string disk, bool begin);
    // Begins or ends a check of a disk's log, index, space and names; store_check() has its result.
    Task<Result<void>> check_store(std::string disk, bool begin);
    Task<objects::CheckStatus> store_check(std::string disk);

private:
    core::Reactor& control_;
    const std::vector<std::unique_ptr<Locality>>& localities_;
    const NodeDisks& disks_;
};

}  // namespace fopd::daemon
