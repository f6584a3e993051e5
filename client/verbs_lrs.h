// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <span>

#include "client/verb.h"

namespace fopd::client {

// The verbs about the request scheduler, in the order of --help.
std::span<const Verb> lrs_verbs();

}  // namespace fopd::client
