// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <optional>

#include "client/local_tree.h"
#include "client/object_run.h"
#include "client/object_tree.h"
#include "client/put_journal.h"
#include "core/task.h"

namespace fopd::client {

// Whether a tree fits the quota.
struct QuotaVerdict {
    std::optional<Problem> fault{};   // Why the tree as a whole does not fit; none: it may fit.
    bool counts_on_replaced = false;  // It fits only because objects are replaced or removed.
};

// Compares the bytes and the number of the files with the quota of the caller and of the pool,
// before any of them is sent. What the tree would replace, or with --delete remove, counts as free:
// the objects that `below` finds. The put itself finds out whether there is room for both.
// `journal` may be null.
Task<QuotaVerdict> compare_tree_with_quota(ObjectRun* run, const LocalTree* tree,
                                           const PutJournal* journal,
                                           const ObjectWalk::Options* below);

}  // namespace fopd::client
