#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "store/object_map.h"

namespace fopd::objects {

// Forgets the recorded replies of a disk that were made until a service time of the disk, as a walk
// over the map shows them. Each change forgets a bounded number, and other work runs in between.
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
    std::vector<store::ReplyKey> keys_;  // Of the present turn.
};

}  // namespace fopd::objects
