#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/start_problem.h"

namespace fopd::daemon {

// The result of a restore for each part of the backup, in words.
struct Restored {
    std::vector<std::string> lines;
    std::uint64_t made = 0;
};

// Restores from a backup the missing files of a data directory that no fopd uses: the node's id,
// the table of slots, the indexes of disks and of names. Existing files are kept, because they are
// newer. Does nothing unless the whole backup is intact and belongs to the node of this directory.
Started<Restored> restore_store(const std::string& data_dir, const std::string& file);

}  // namespace fopd::daemon
