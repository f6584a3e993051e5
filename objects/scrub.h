#pragma once

#include <cstdint>

#include "core/cancel.h"
#include "core/task.h"
#include "objects/home_volume.h"
#include "objects/stores.h"

namespace fopd::objects {

// Reads the data of all objects of a disk at a limited rate and compares it with its checksums.
// Damage is logged and counted; reading a damaged block fails with or without a scrub. One scrub
// per disk at a time; its progress is in the HomeVolume.
class Scrub {
public:
    // The stores outlive it; its work enters their gate duties().
    Scrub(Stores& stores, std::uint64_t bytes_per_second)
        : stores_(stores), bytes_per_second_(bytes_per_second) {}

    // kNotFound: the disk is not here; kBusy: a scrub is in progress. On the reactor of the stores.
    Result<void> begin(store::Slot slot);
    // Ends the scrub after the part that it reads now. No effect if none is in progress.
    void end(store::Slot slot);

private:
    class Pass;

    Task<void> run(HomeVolume* home, HomeVolume::Hold hold);

    Stores& stores_;
    const std::uint64_t bytes_per_second_;
};

}  // namespace fopd::objects
