// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/verb.h"

namespace fopd::client {

// put, get and rm with --recursive. They return the exit code.
int put_tree(const Call& call);
int get_tree(const Call& call);
int remove_tree(const Call& call);

}  // namespace fopd::client
