#pragma once

#include <cstdint>
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

// Who chose the directory. The default one lies where anybody may make directories: whoever was
// there first must not choose the configuration and the key of the next, so it must be ours.
enum class DevDir : std::uint8_t { kNamed, kDefault };

// Makes what is missing below `dir_given`: a data directory, a key, a configuration file that can
// be edited and is not written again, and env.sh, after which every client finds the daemon.
Started<DevSetup> make_dev_setup(const std::string& dir_given, DevDir chosen);

}  // namespace fopd::daemon
