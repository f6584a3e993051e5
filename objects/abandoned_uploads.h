#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "store/object_map.h"

namespace fopd::objects {

// Gives up the uploads of a disk that were not written for a time, as a walk over the map shows
// them. Each change gives up a bounded number, and other work runs in between.
class AbandonedUploads final : public store::MapVisitor {
public:
    // REQUIRES: the disk is held.
    AbandonedUploads(HomeVolume& home, core::Reactor& reactor, Duration timeout)
        : home_(home), reactor_(reactor), timeout_(timeout) {}

    Result<void> upload(store::Fid fid, const store::Upload& upload) override;
    Task<Result<void>> between_turns() override;

private:
    bool is_abandoned(store::Fid fid) const;
    Task<Result<void>> give_up(std::size_t at, std::size_t count);

    HomeVolume& home_;
    core::Reactor& reactor_;
    const Duration timeout_;
    std::vector<store::Fid> fids_;  // Found in this turn, to be removed.
};

}  // namespace fopd::objects
