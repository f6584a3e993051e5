// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <span>

#include "client/verb.h"

namespace fopd::client {

// The verbs about objects, which go over the network.
std::span<const Verb> object_verbs();

}  // namespace fopd::client
