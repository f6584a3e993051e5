#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "objects/stores.h"
#include "store/check_report.h"
#include "store/fid.h"

namespace fopd::objects {

// The progress and result of the newest check of a disk.
struct CheckStatus {
    enum class State : std::uint8_t { kNever, kRunning, kDone, kEnded, kFailed };

    State state = State::kNever;
    std::string stage{};    // The part that is being checked.
    std::string problem{};  // Why the check failed.
    Duration took{};
    store::CheckReport report{};
};
const char* to_string(CheckStatus::State state);

// Checks disks while they are in use: whether index, space, log, names, counts and, while nobody
// uses the disk, quotas agree. Findings
// are logged and reported. One check per disk at a time. Lives on the reactor of the stores.
class StoreCheck {
public:
    // The stores outlive it; its work enters their gate duties(). The rate limits its reading.
    StoreCheck(Stores& stores, std::uint64_t bytes_per_second);
    ~StoreCheck();
    StoreCheck(const StoreCheck&) = delete;
    StoreCheck& operator=(const StoreCheck&) = delete;

    // kNotFound: the disk is not here; kBusy: a check is in progress.
    Result<void> begin(store::Slot slot);
    // Asks the check to end soon. No effect if none is in progress.
    void end(store::Slot slot);
    CheckStatus status(store::Slot slot) const;
    // The number of findings of the newest check of the disk so far.
    std::uint64_t finding_count(store::Slot slot) const;

private:
    class Run;

    Stores& stores_;
    const std::uint64_t bytes_per_second_;
    std::map<store::Slot, std::unique_ptr<Run>> runs_;  // The newest check of each slot.
};

}  // namespace fopd::objects
