// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "client/replaced_file.h"
#include "client/verb.h"

namespace fopd::client {

inline constexpr const char* kPrincipalsDefault = "/etc/fopd/principals.yaml";
// The user that the package makes for the daemon.
inline constexpr const char* kDaemonUser = "fopd";

// The file of principals that a verb changes, and the user that must be able to read it.
struct KeysTarget {
    std::string path;
    bool is_in_use = false;      // A daemon that runs reads it.
    bool is_configured = false;  // A daemon that does not run has it in its configuration.
    bool open_to_all = false;    // The daemon accepts clients without a key.
    std::optional<ReplacedFile::Reader> reader = {};
};

// Finds the file of principals: that of the running daemon, otherwise the file in the arguments. If
// a change of the file in the arguments would have no effect, complains and returns the exit code.
std::expected<KeysTarget, int> find_keys_target(const Call& call);

}  // namespace fopd::client
