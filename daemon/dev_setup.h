#pragma once

#include <string>

#include "daemon/start_problem.h"

namespace fopd::daemon {

// What `fopd --dev` runs on.
struct DevSetup {
    std::string dir;
    std::string config_file;
};

// Where --dev keeps its things when no directory is named.
std::string default_dev_dir();

// Makes what is missing below `dir_given`: a data directory, keys, and a configuration file that
// can be edited and is not written again. A directory that is there already must belong to this
// user, and nobody else may write into it: whoever was there first must not choose the
// configuration and the key.
Started<DevSetup> make_dev_setup(const std::string& dir_given);

// Writes env.sh, after which every client finds the daemon. `server` is where it listens; empty
// when it does not, or on a port nobody knows yet.
Started<void> write_dev_environment(const DevSetup& setup, const std::string& server);

}  // namespace fopd::daemon
