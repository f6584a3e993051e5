#pragma once

#include <string_view>

#include "fabric/rpc/incoming.h"
#include "objects/access.h"

namespace fopd::reqh {

// The owner of objects that a caller creates: the user it acts for, or itself.
inline std::string_view acting_user(const fabric::Caller& caller) {
    return caller.user.empty() ? caller.principal : caller.user;
}

// Borrows from the caller.
inline objects::Actor actor_of(const fabric::Caller& caller) {
    return {.principal = caller.principal,
            .user = acting_user(caller),
            .groups = caller.groups,
            .may_administer = caller.rights.cover(fop::kAdmin)};
}

}  // namespace fopd::reqh
