#pragma once

#include <string>

#include "config/schema.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// What a check of all disks of a configuration found, of which no fopd makes use.
struct OfflineCheck {
    std::string json;  // As GET /v1/store/check-report has it.
    bool is_well = true;
};

// Looks at each disk as it is: its log is replayed in memory, and nothing is written, neither on
// the disk nor beside it. Names are not looked at: nobody has told them what the log has last.
Started<OfflineCheck> check_offline(const config::Snapshot& settings);

}  // namespace fopd::daemon
