#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "store/object_map.h"

namespace fopd::objects {

// A visitor for ObjectMap::for_each(): removes each upload that received no write for `timeout`. A
// change removes a bounded number of uploads; other coroutines run between changes.
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
    // Abandoned uploads seen in the current turn; between_turns() removes them.
    std::vector<store::Fid> fids_;
};

}  // namespace fopd::objects
