#pragma once

#include <optional>
#include <string>

#include "core/reactor.h"
#include "core/task.h"
#include "objects/name_part.h"
#include "objects/stores.h"

namespace fopd::objects {

// Removes objects that lost their names to other objects, each on its own disk: after the reply to
// the fop that replaced them, and after a crash. There is one for each shard of the names, on its
// locality.
//
// If a name was given to another object while the disk of its owner was missing, the new owner did
// not know the older object. If it had no right to replace that object, the object is not removed,
// and gets a name of its own.
class ReplacedObjects {
public:
    // The owner of a name that did not know the older object.
    struct LateOwner {
        store::Fid fid{};
        std::string principal;
    };

    // All outlive it. Its work belongs to the duties of the stores and ends with them.
    ReplacedObjects(Stores& stores, NamePart& part) : stores_(stores), part_(part) {}

    // Called once, when all present disks have been opened.
    void start();
    // Called when a disk that was missing has been opened.
    void look_again();

private:
    Task<void> run();
    Task<Result<void>> settle_page();
    Task<Result<void>> settle(const store::NameClaim* claim);
    Task<Result<void>> settle_late(const store::NameClaim* claim, store::Fid by);
    Task<Result<void>> name_anew(const store::NameClaim* claim, const LateOwner* by);
    template <typename Value, typename Job>
    Task<Result<Value>> run_at_home(store::Slot slot, Job* job);

    Stores& stores_;
    NamePart& part_;
    std::optional<store::NameClaim> behind_;
};

}  // namespace fopd::objects
