#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/rpc/incoming.h"
#include "store/object.h"

namespace fopd::reqh {

// What somebody wants of an object.
enum class Access : std::uint8_t {
    kNone,   // Only that it is there.
    kRead,   // Its bytes and what is known of it.
    kWrite,  // To change its bytes, its name, or to remove it.
    kOwn,    // To say who may do what.
};

// Whom what a caller makes belongs to.
inline std::string_view acting_user(const fabric::Caller& caller) {
    return caller.user.empty() ? caller.principal : caller.user;
}
// The groups are those of the principal, not of whom it acts for.
bool is_in_group(const fabric::Caller& caller, std::string_view group);

// Whether an object's owner, group and mode let the caller; with the right to administer, anybody
// may.
bool may(const fabric::Caller& caller, const store::Object& object, Access access);

}  // namespace fopd::reqh
