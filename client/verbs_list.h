// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "client/object_run.h"
#include "client/verb.h"

namespace fopd::client {

// The verbs that list objects and pools: `ls`, `df` and `quota`.
int run_list(const Call& call);
int run_free_space(const Call& call);
int run_quota(const Call& call);

// The object that has the fid of --fid.
Task<Outcome<ObjectInfo>> find_by_fid(ObjectRun* run);
// The pool that the arguments name, or all pools.
Task<Outcome<std::vector<PoolSpace>>> find_pools(ObjectRun* run);

}  // namespace fopd::client
