#pragma once

#include <optional>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "objects/name_part.h"
#include "objects/object_name.h"

namespace fopd::objects {

// Access from one locality to all names of the node: sends requests to the locality that has the
// name's part. To change the object that a name refers to: hold the name, write the object's
// record, and release the hold when the record is durable. The volume then tells the name's part,
// which ends the hold if it is on another locality. The objects' records on the disks are
// authoritative. An operation that holds several names acquires them in the order of before().
class Names {
public:
    // `parts`: all parts, by number; they outlive it.
    Names(core::Reactor& here, std::vector<NamePart*> parts);

    Task<Result<std::optional<NamedObject>>> find(ObjectName name);
    // In the order of the names' bytes.
    Task<Result<NameList>> list(NameListRequest request);

    // Waits for the name's other holders, first come, first served. kTimedOut, kCancelled; kClosed
    // when the node stops.
    Task<Result<NameHold>> hold(ObjectName name, core::WaitOptions wait);
    // Like hold(), in order to take the name from its owner; kNotFound if it has no owner.
    Task<Result<NameHold>> hold_to_leave(ObjectName name, core::WaitOptions wait);
    // Ends a hold. Every hold must end with this call or the next. Never fails.
    Task<void> let_go(NameHold hold);
    // Ends a hold without a message. REQUIRES: the change under the hold was of an object on this
    // locality, and its volume has told the name's part of it.
    void let_go_told(const NameHold& hold);
    // Whether `one` must be held before `other`.
    bool before(const ObjectName& one, const ObjectName& other) const;

private:
    NamePart& part_with(store::NameRef name) const;
    Task<Result<NameHold>> hold_at_part(NamePart::Wanted wanted);

    core::Reactor& here_;
    const std::vector<NamePart*> parts_;
};

}  // namespace fopd::objects
