#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cancel.h"
#include "core/task.h"
#include "core/time.h"
#include "objects/block_io.h"
#include "objects/home_volume.h"
#include "objects/stores.h"
#include "store/object_map.h"

namespace fopd::objects {

// Reads all that the objects of a disk have on it, and compares it with the checksums it was
// written with, no faster than it is told to. What is damaged is an event, and is counted; reading
// it fails as it would have without. One a disk at a time; its progress is its HomeVolume's.
class Scrub {
public:
    // The stores outlive it; its work is one of their duties.
    Scrub(Stores& stores, std::uint64_t bytes_per_second)
        : stores_(stores), bytes_per_second_(bytes_per_second) {}

    // kNotFound: the disk is not here; kBusy: one is under way. On the reactor of the stores.
    Result<void> begin(store::Slot slot);
    // At the next piece. Without one under way nothing happens.
    void end(store::Slot slot);

private:
    class Pass;

    Task<void> run(HomeVolume* home, HomeVolume::Hold hold);

    Stores& stores_;
    const std::uint64_t bytes_per_second_;
};

}  // namespace fopd::objects
