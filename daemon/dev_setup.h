#pragma once

#include <string>

#include "daemon/start_problem.h"

namespace fopd::daemon {

// The files that `fopd --dev` uses.
struct DevSetup {
    std::string dir;
    std::string config_file;
};

// The directory --dev uses when none is given.
std::string default_dev_dir();

// Creates below `dir_given`, unless they exist: a data directory, keys, and a configuration file,
// which the user may edit and which is never overwritten. An existing directory must belong to this
// user and not be writable by others: another user who creates the directory first must not choose
// the configuration and the key.
Started<DevSetup> make_dev_setup(const std::string& dir_given);

// Writes env.sh; a shell that sources it has the settings with which clients find the daemon.
// `server` is the address it listens at; empty if it does not listen, or its port is not known yet.
Started<void> write_dev_environment(const DevSetup& setup, const std::string& server);

}  // namespace fopd::daemon
