#pragma once

#include <string>

#include "core/entropy.h"
#include "daemon/start_problem.h"
#include "devices/label.h"

namespace fopd::daemon {

// Who this node is to its disks: the file node.id in its data directory, made at the first start.
// One that is damaged is refused rather than replaced: to a new node the disks would be a
// stranger's.
Started<devices::NodeId> load_node_id(const std::string& data_dir, core::Entropy& entropy);

}  // namespace fopd::daemon
