// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <span>

#include "client/verb.h"

namespace fopd::client {

// The verbs about keys and tokens, in the order of --help.
std::span<const Verb> key_verbs();

}  // namespace fopd::client
