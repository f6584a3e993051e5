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
// both change. A claim is never made again once it has ended. So if an object makes a claim before
// the sink has received all changes begun so far, and still makes it after the sink was asked, then
// it made the claim all the time, and the sink must know it. In the other direction the comparison
// is done twice: an object may have made the claim after the objects were looked at, and before the
// sink was asked.
class ClaimCheck {
public:
    // The volume has a name sink.
    ClaimCheck(const VolumeView& volume, core::CancelSource* cancel)
        : volume_(volume), cancel_(cancel) {}

    // Returns those of the given claims that an object makes and the sink does not know.
    Task<Result<std::vector<NameClaim>>> unknown(std::vector<NameClaim> claims);
    // Returns those of the given claims that the sink knows and no object makes.
    Task<Result<std::vector<NameClaim>>> unmade(std::vector<NameClaim> claims);

private:
    enum class Claimed : std::uint8_t { kByObject, kByNone };

    Result<bool> is_made(const NameClaim& claim) const;
    Result<void> keep_only(std::vector<NameClaim>& claims, Claimed claimed) const;

    const VolumeView volume_;
    core::CancelSource* const cancel_;
};

}  // namespace fopd::store
