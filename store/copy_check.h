#pragma once

#include <vector>

#include "core/result.h"
#include "store/check_report.h"
#include "store/copy.h"
#include "store/volume_view.h"

namespace fopd::store {

// Checks that the copies on cartridges, the positions and totals of the cartridges, the released
// objects and the recalls of a volume agree. Part of VolumeCheck: entries seen in one turn are
// compared in the same turn.
class CopyCheck {
public:
    explicit CopyCheck(const VolumeView& volume) : volume_(volume) {}

    // REQUIRES: the kind is kCopy, kPosition, kTotal or kRecall.
    Result<void> see(const IndexEntry& entry);
    void see_released(Fid fid) { released_.push_back(fid); }
    // Appends the findings about all entries seen, and forgets the entries.
    Result<void> judge(std::vector<CheckFinding>& findings);
    // Forgets all entries seen, without findings.
    void forget();

private:
    Result<void> judge_copy(const Copy& copy, std::vector<CheckFinding>& findings);
    Result<void> judge_position(const PositionOwner& owner, std::vector<CheckFinding>& findings);
    Result<void> judge_recall(Fid fid, std::vector<CheckFinding>& findings);
    Result<void> judge_released(Fid fid, std::vector<CheckFinding>& findings);

    const VolumeView volume_;
    std::vector<Copy> copies_;
    std::vector<PositionOwner> owners_;
    std::vector<CartridgeTotal> totals_;
    std::vector<Fid> recalls_;
    std::vector<Fid> released_;
};

}  // namespace fopd::store
