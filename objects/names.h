#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "objects/name_part.h"
#include "objects/object_name.h"

namespace fopd::objects {

// The names of the objects of a node, as one of its localities reaches them: it asks the locality
// that keeps the name's part. To change which object has a name, hold the name, write the record of
// the object, and let go of the name when that is durable: the disks are the truth of what their
// objects are called. An operation that holds several names acquires them in the order of before().
class Names {
public:
    // Part n of all of them; they outlive it.
    Names(core::Reactor& here, std::vector<NamePart*> parts);

    Task<Result<std::optional<NamedObject>>> find(ObjectName name);
    // In the order of the bytes.
    Task<Result<NameList>> list(NameListRequest request);

    // Waits until no other holds it, first come, first served. kTimedOut, kCancelled; kClosed when
    // the node stops.
    Task<Result<NameHold>> hold(ObjectName name, core::WaitOptions wait);
    // Like hold(), in order to take the name from its owner; kNotFound if it has no owner.
    Task<Result<NameHold>> hold_to_leave(ObjectName name, core::WaitOptions wait);
    // Ends a hold. Every hold must end with this call. Never fails.
    Task<void> let_go(NameHold hold);
    // Whether `one` is to be held before `other`.
    bool before(const ObjectName& one, const ObjectName& other) const;

private:
    std::uint32_t part_of(const ObjectName& name) const;
    Task<Result<NameHold>> hold_at(std::uint32_t number, NamePart::Wanted wanted);

    core::Reactor& here_;
    const std::vector<NamePart*> parts_;
};

}  // namespace fopd::objects
