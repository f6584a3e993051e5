#pragma once

#include <string>

#include "core/entropy.h"
#include "daemon/start_problem.h"
#include "devices/label.h"

namespace fopd::daemon {

// Loads the id by which the node's disks know it: the file node.id in its data directory, made at
// the first start. A damaged file is an error and is not replaced, because with a new id the node
// would not accept its own disks.
Started<devices::NodeId> load_node_id(const std::string& data_dir, core::Entropy& entropy);

}  // namespace fopd::daemon
