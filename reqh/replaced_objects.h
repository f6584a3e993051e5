#pragma once

#include "core/reactor.h"
#include "core/task.h"
#include "reqh/node_names.h"
#include "reqh/stores.h"

namespace fopd::reqh {

// Removes the objects that have lost their names to others, each on its own disk: when the reply of
// who replaced them has left, and after a crash those that were left over. One for each part of the
// names, on its locality.
class ReplacedObjects {
public:
    // All outlive it. Its work is one of the duties of the stores, and ends with them.
    ReplacedObjects(Stores& stores, NamePart& part) : stores_(stores), part_(part) {}

    // Once, when all disks that there are have been opened.
    void start();
    // There is a disk that was missing.
    void look_again();

private:
    Task<void> run();
    Task<Result<void>> remove_page();
    Task<Result<void>> remove(store::NameClaim claim);

    Stores& stores_;
    NamePart& part_;
    std::optional<store::NameClaim> behind_;
};

}  // namespace fopd::reqh
