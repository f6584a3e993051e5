#pragma once

#include <cstdint>
#include <string_view>

#include "objects/disk_use.h"
#include "reqh/refusal.h"
#include "reqh/refusal_words.h"
#include "reqh/running_fop.h"
#include "store/fid.h"

namespace fopd::reqh {

// Looks up the pools and disks of the node for a fop. The error is the refusal, if there is none or
// it is not available.
class LayoutLookup {
public:
    // Both arguments outlive this object.
    LayoutLookup(const RunningFop& fop, RefusalWords& words) : fop_(fop), words_(words) {}

    // The pool that the header names. kWrongPool: there is no such pool.
    Granted<objects::PoolId> find_pool() const;
    // kQuota if the amount is more than the owner or the pool may still have, on all disks. Takes
    // nothing. REQUIRES: find_pool() has found the pool.
    Granted<> check_quota(objects::PoolOwner whose, objects::Amount wanted);
    // The locality of a slot. kMediumMissing: its disk is missing; kNotFound: there is no such
    // slot, or its disk was let go.
    Granted<std::uint32_t> locality_of(store::Slot slot);
    // The disk of a slot that is at the fop's present locality; otherwise as locality_of().
    Granted<objects::HomeVolume*> find_home(store::Slot slot);
    // The refusal if no object has the name: kNotFound, or kMediumMissing if an object on a missing
    // disk may have it.
    Refusal why_no_name(objects::PoolId pool);
    // kMediumMissing, with these words and the names of the disks, unless all names of the pool are
    // known.
    Granted<> check_names_known(
        objects::PoolId pool,
        std::string_view words = "it may be on a disk that is missing or incomplete");

private:
    Refusal why_not_there(store::Slot slot);

    const RunningFop& fop_;
    RefusalWords& words_;
};

}  // namespace fopd::reqh
