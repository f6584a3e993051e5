#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/start_problem.h"

namespace fopd::daemon {

// What a restore did with each thing that the backup has, in words.
struct Restored {
    std::vector<std::string> lines;
    std::uint64_t made = 0;
};

// Puts back from a backup what is missing in a data directory that no fopd uses: the node's id, the
// table of slots, the indexes of disks and of names. What is there stays: it is newer. Nothing is
// done unless all of the file is whole, and of the node whose directory it is.
Started<Restored> restore_store(const std::string& data_dir, const std::string& file);

}  // namespace fopd::daemon
