#pragma once

#include <cstdint>
#include <vector>

#include "core/cancel.h"
#include "core/result.h"
#include "core/task.h"
#include "store/name_sink.h"
#include "store/volume_view.h"

namespace fopd::store {

// Compares the names that the objects of a volume claim with those that its name sink knows, while
// both change. A claim to a name is unique, and is never made again once it has ended. So an object
// that claims a name before the sink had all changes, and still does after the sink was asked in
// vain, claimed it all the time. The other direction takes two looks: the claim may have been made
// between them.
class ClaimCheck {
public:
    // The volume has a name sink.
    ClaimCheck(const VolumeView& volume, core::CancelSource* cancel)
        : volume_(volume), cancel_(cancel) {}

    // Of claims that objects make, those that the sink does not know.
    Task<Result<std::vector<NameClaim>>> unknown(std::vector<NameClaim> claims);
    // Of claims that the sink knows, those that no object makes.
    Task<Result<std::vector<NameClaim>>> unmade(std::vector<NameClaim> claims);

private:
    enum class Claimed : std::uint8_t { kByObject, kByNone };

    Result<bool> is_made(const NameClaim& claim) const;
    Result<void> keep_only(std::vector<NameClaim>& claims, Claimed claimed) const;

    const VolumeView volume_;
    core::CancelSource* const cancel_;
};

}  // namespace fopd::store
