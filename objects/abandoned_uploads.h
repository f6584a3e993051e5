#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "store/object_map.h"

namespace fopd::objects {

// Gives up the uploads of a disk to which nobody has written for a time, as they are shown: a
// bounded number in each change, others' turns between them, until it has seen all.
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
    std::vector<store::Fid> fids_;  // Of one turn.
};

}  // namespace fopd::objects
