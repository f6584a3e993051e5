// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

#include "fabric/rpc/client.h"

namespace fopd::client {

// The reason why no server would accept the name of a pool, job, user or group, as `what` says. It
// quotes the beginning of the name, and is safe for a terminal. Empty if the name is valid.
std::string fault_of_name(std::string_view what, std::string_view text);

// Like fault_of_name(), for all names in a request except the names of objects.
std::string fault_of(const fabric::CallRequest& request);

}  // namespace fopd::client
