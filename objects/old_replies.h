#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "store/object_map.h"

namespace fopd::objects {

// Forgets the recorded replies of a disk that were made when the disk had been in service for
// `up_to` or less. A walk over the map finds them. Each change forgets a bounded number, and other
// work runs between two changes.
class OldReplies final : public store::MapVisitor {
public:
    // REQUIRES: the disk is held.
    OldReplies(HomeVolume& home, Duration up_to)
        : home_(home), up_to_(up_to), wait_{.cancel = &home.ending()} {}

    Result<void> reply(const store::ReplyRecord& record) override;
    Task<Result<void>> between_turns() override;

private:
    Task<Result<void>> forget(std::size_t at, std::size_t count);
    bool is_old(const store::ReplyRecord& record) const { return record.made <= up_to_; }

    HomeVolume& home_;
    const Duration up_to_;
    const core::WaitOptions wait_;
    std::vector<store::ReplyKey> keys_;  // Found in this turn, to be forgotten.
};

}  // namespace fopd::objects
