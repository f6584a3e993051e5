#pragma once

#include <string_view>

#include "core/task.h"
#include "reqh/operation.h"
#include "reqh/refusal.h"
#include "store/fid.h"

// What fops that give an object its name have in common.
namespace fopd::reqh {

// Whether the caller may have an object make way for another. It may be at home elsewhere; the
// operation's own home is here again afterwards.
Task<Granted<>> check_may_replace(Operation* operation, store::Fid fid);

struct NewName {
    objects::ObjectName name{};
    bool no_replace = false;
};
// Holds the name for a new object: kExists, kDenied when it may not have it.
Task<Granted<>> hold_for_new_object(Operation* operation, NewName name);

// The group of a new object: the one that was asked for, or the maker's first.
Granted<std::string_view> group_for(const Operation& operation, objects::PoolId pool,
                                    std::string_view group);

}  // namespace fopd::reqh
