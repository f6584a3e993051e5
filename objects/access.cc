#include "objects/access.h"

#include <algorithm>

namespace fopd::objects {

namespace {

constexpr unsigned kReadBit = 4;
constexpr unsigned kWriteBit = 2;
constexpr unsigned kOwnerShift = 6;
constexpr unsigned kGroupShift = 3;

}  // namespace

bool is_in_group(const Actor& actor, std::string_view group) {
    const bool is_for_itself = actor.user == actor.principal;
    return is_for_itself && !group.empty() &&
           std::ranges::find(actor.groups, group) != actor.groups.end();
}

bool may(const Actor& actor, const store::Object& object, Access access) {
    if (access == Access::kNone || actor.may_administer) return true;
    const bool is_owner = object.owner == actor.user;
    if (access == Access::kOwn) return is_owner;
    unsigned shift = 0;
    if (is_owner) {
        shift = kOwnerShift;
    } else if (is_in_group(actor, object.group)) {
        shift = kGroupShift;
    }
    const unsigned needed = access == Access::kRead ? kReadBit : kWriteBit;
    return (object.mode >> shift & needed) != 0;
}

}  // namespace fopd::objects
