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

// How far the newest check of a disk is, and what it found.
struct CheckStatus {
    enum class State : std::uint8_t { kNever, kRunning, kDone, kEnded, kFailed };

    State state = State::kNever;
    std::string stage{};    // What it is looking at.
    std::string problem{};  // Why it could not be done.
    Duration took{};
    store::CheckReport report{};
};
const char* to_string(CheckStatus::State state);

// Checks disks while they are used: that index, space, log, names and counts say the same. What is
// found is an event and in the report. One a disk at a time. Lives on the reactor of the stores.
class StoreCheck {
public:
    // The stores outlive it; its work is one of their duties. The rate is for what it reads.
    StoreCheck(Stores& stores, std::uint64_t bytes_per_second);
    ~StoreCheck();
    StoreCheck(const StoreCheck&) = delete;
    StoreCheck& operator=(const StoreCheck&) = delete;

    // kNotFound: the disk is not here; kBusy: one is under way.
    Result<void> begin(store::Slot slot);
    // In its own time. Without one under way nothing happens.
    void end(store::Slot slot);
    CheckStatus status(store::Slot slot) const;

private:
    class Run;

    Stores& stores_;
    const std::uint64_t bytes_per_second_;
    std::map<store::Slot, std::unique_ptr<Run>> runs_;  // The newest of each.
};

}  // namespace fopd::objects
