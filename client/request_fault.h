// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

#include "fabric/rpc/client.h"

namespace fopd::client {

// Why no server would take this as the name of a pool, job, user or group, whichever `what` says:
// with its beginning, and safe for a terminal. Empty when one may.
std::string fault_of_name(std::string_view what, std::string_view text);

// The same for a request and what it borrows, but for the names of objects.
std::string fault_of(const fabric::CallRequest& request);

}  // namespace fopd::client
