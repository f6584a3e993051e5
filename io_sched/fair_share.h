#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "io_sched/dispatch.h"

namespace fopd::io_sched {

// A number of drives for each type of request.
using DriveCounts = std::array<std::uint32_t, kIoTypeCount>;

struct DriveLimits {
    DriveCounts min{};
    // 0: the type gets none.
    DriveCounts max{kNoMax, kNoMax, kNoMax};

    static constexpr std::uint32_t kNoMax = std::numeric_limits<std::uint32_t>::max();
};

// Divides `drives` drives among the types in proportion to `weights`, whole drives only; a type
// with weight 0 gets none. The rest goes to the types that are farthest below their share. One or
// two drives are shared: each type gets one, and with two the heaviest gets both. If the minima of
// all types together exceed `drives`, no type gets more than its minimum. Pure.
DriveCounts divide_drives(std::uint32_t drives,
                          const std::array<std::uint64_t, kIoTypeCount>& weights,
                          const DriveLimits& limits);

struct FairShareOptions {
    // In percent; without them the cost of the waiting requests is the weight.
    std::optional<DriveCounts> weights{};
    std::map<std::string, DriveLimits, std::less<>> limits{};  // By technology.
};

// Device dispatch `fair_share`: each scheduler has drives in proportion to the cost of what waits
// there, of each technology. A drive changes hands once a minute at most, never in use, and not
// before the scheduler that is to get it has lacked it for some time.
class FairShareDispatch final : public DeviceDispatch {
public:
    static constexpr Duration kDriveRest = 1min;
    static constexpr Duration kSettle = 10s;

    explicit FairShareDispatch(FairShareOptions options) : options_(std::move(options)) {}

    void dispatch(std::span<IoDevice* const> devices, std::span<SchedulerLoad> schedulers,
                  Instant now) override;
    void forget(IoDevice& device) override { moved_.erase(device.number()); }
    Instant next_time(Instant now) const override;

private:
    // The drives of one technology, and how many of them each scheduler has.
    struct Group;

    DriveCounts target(const Group& group) const;
    void settle(const Group& group, Instant now);
    void give(Group& group, Instant now);
    bool give_one(Group& group, std::size_t to, Instant now);
    void take_back(Group& group, std::size_t from, Instant now);
    void exchange(Group& group, Instant now);
    bool may_move(const IoDevice& device, Instant now) const;
    void moved(const IoDevice& device, Instant now) { moved_[device.number()] = now; }

    const FairShareOptions options_;
    std::map<std::uint8_t, Instant> moved_;  // By the drive's number.
    // Since when a scheduler has had fewer drives of a technology than its share; empty: it has
    // not.
    std::map<Technology, std::array<std::optional<Instant>, kIoTypeCount>> lacking_;
};

// Request dispatch `fair_share`: each scheduler gets requests in proportion to its weight, by their
// cost. A scheduler that had no requests for a while gets no extra share afterwards.
class FairShareRequests final : public RequestDispatch {
public:
    explicit FairShareRequests(const DriveCounts& weights) : weights_(weights) {}

    IoRequest* next(std::span<IoRequest* const> peeked) const override;
    void taken(std::size_t scheduler, std::uint64_t cost) override;

private:
    std::uint64_t start_of(std::size_t scheduler) const;

    const DriveCounts weights_;
    std::uint64_t virtual_time_ = 0;
    std::array<std::uint64_t, kIoTypeCount> finish_{};  // Of the last request of each.
};

}  // namespace fopd::io_sched
