#pragma once

#include <string_view>

#include "core/task.h"
#include "reqh/operation.h"
#include "reqh/refusal.h"
#include "store/fid.h"

// Shared by the fops that give a name to an object.
namespace fopd::reqh {

// Whether the caller may replace this object, whose home may be another locality. On return, the
// operation is back at its own home.
Task<Granted<>> check_may_replace(Operation* operation, store::Fid fid);

struct NewName {
    objects::ObjectName name{};
    bool no_replace = false;
};
// Holds the name for a new object. kExists; kDenied if the caller may not replace its owner.
Task<Granted<>> hold_for_new_object(Operation* operation, NewName name);

// The group of a new object: the requested one, or else the creator's first.
Granted<std::string_view> group_for(const Operation& operation, objects::PoolId pool,
                                    std::string_view group);

}  // namespace fopd::reqh
