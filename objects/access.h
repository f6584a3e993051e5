#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/object.h"

namespace fopd::objects {

// The party on whose behalf an object is used. Borrows its texts.
struct Actor {
    std::string_view principal{};
    std::string_view user{};  // The owner of objects that the actor creates.
    // The groups of the principal, not of the user it acts for.
    std::span<const std::string> groups{};
    bool may_administer = false;
};

// The kind of use.
enum class Access : std::uint8_t {
    kNone,   // To learn that the object exists.
    kRead,   // To read its bytes and attributes.
    kWrite,  // To change its bytes or its name, or to remove it.
    kOwn,    // To change its owner, group or mode.
};

// Whether the actor's principal is a member of the group. False if it acts for another user.
bool is_in_group(const Actor& actor, std::string_view group);

// Whether the object's owner, group and mode permit the access. An administrator may do everything.
bool may(const Actor& actor, const store::Object& object, Access access);

}  // namespace fopd::objects
