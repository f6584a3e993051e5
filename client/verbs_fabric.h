// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <span>

#include "client/verb.h"

namespace fopd::client {

// The verbs that speak to the server as every client does, in the order of --help.
std::span<const Verb> fabric_verbs();

}  // namespace fopd::client
