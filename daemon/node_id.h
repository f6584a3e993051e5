#pragma once

#include <string>
#include <vector>

#include "core/entropy.h"
#include "daemon/start_problem.h"
#include "devices/label.h"

namespace fopd::daemon {

// Loads the id by which the node's disks know it: the file node.id in its data directory, made at
// the first start. With a new id the node would not accept its own disks. So a damaged file is not
// replaced, and no file is made if one of the disks at `disk_paths`, or the table of slots in the
// data directory, shows that there was one. Blocks while it reads the disks' labels.
Started<devices::NodeId> load_node_id(const std::string& data_dir,
                                      const std::vector<std::string>& disk_paths,
                                      core::Entropy& entropy);

}  // namespace fopd::daemon
