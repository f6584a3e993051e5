// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <span>

#include "client/object_session.h"
#include "client/verb.h"

namespace fopd::client {

// The verbs about objects, which go over the network.
std::span<const Verb> object_verbs();

// How a verb's sessions are made.
ObjectSession::Options session_options(const Call& call);
// Says why there is none; the exit code.
int complain_about(const Call& call, const ObjectSession::Failure& failure);

}  // namespace fopd::client
