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
    // Returns a page of the pool's names, in byte order.
    Task<Result<NameList>> list(NameListRequest request);

    // Waits for the name's other holders, first come, first served. kTimedOut, kCancelled; kClosed
    // when the node stops.
    Task<Result<NameHold>> hold(ObjectName name, core::WaitOptions wait);
    // Like hold(), to take the name away from the object that has it. Also waits until the objects
    // that the owner replaced are removed. kNotFound: no object has the name.
    Task<Result<NameHold>> hold_to_remove(ObjectName name, core::WaitOptions wait);
    // Ends a hold. Every hold must end with this call or the next. Never fails.
    Task<void> let_go(NameHold hold);
    // Ends a hold after a change of the name, without a message: if the name's part is on another
    // locality, that has ended the hold already. REQUIRES: the changed object is on this locality,
    // and its volume has reported the change to the name's part.
    void let_go_after_change(const NameHold& hold);
    // Whether `one` must be held before `other`.
    bool before(const ObjectName& one, const ObjectName& other) const;

private:
    NamePart& part_with(store::NameRef name) const;
    Task<Result<NameHold>> hold_at_part(NamePart::Wanted wanted);

    core::Reactor& here_;
    const std::vector<NamePart*> parts_;
};

}  // namespace fopd::objects
