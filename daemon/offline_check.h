#pragma once

#include <string>

#include "config/schema.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// The result of checking all disks of a configuration while no fopd uses them.
struct OfflineCheck {
    std::string json;  // The report, in the form of GET /v1/store/check-report.
    bool is_well = true;
};

// Checks each disk as it is: replays its log in memory and writes nothing, neither to the disk nor
// to the data directory. Does not check names: the names index may lack the newest changes of the
// log.
Started<OfflineCheck> check_offline(const config::Snapshot& settings);

}  // namespace fopd::daemon
