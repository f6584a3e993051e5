#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lrs/classes/pace.h"
#include "lrs/classes/ticks.h"

namespace fopd::lrs {

// The cost of a request, in units of 1/kCostOfOne of a request without data.
using Cost = std::int64_t;

inline constexpr Cost kCostOfOne = 1024;
// An upper bound of the cost of a request. Costs are multiplied by factors below 2^29.
inline constexpr Cost kCostMax = Cost{1} << 34;

// One for the request, and one for each `unit` bytes of its data; null: data costs nothing.
class CostModel {
public:
    static constexpr std::uint64_t kUnit = 64UL * 1024;
    static constexpr std::uint64_t kUnitMin = 512;

    CostModel() = default;
    explicit CostModel(std::optional<std::uint64_t> unit) : unit_(unit.value_or(0)) {}

    Cost cost_of(std::uint64_t bytes) const {
        if (unit_ == 0) return kCostOfOne;
        const std::uint64_t most = static_cast<std::uint64_t>(kCostMax) / kCostOfOne * unit_;
        if (bytes >= most) return kCostMax;
        const std::uint64_t of_data = (bytes * kCostOfOne + unit_ - 1) / unit_;
        return std::min(kCostMax, kCostOfOne + static_cast<Cost>(of_data));
    }

    friend bool operator==(const CostModel&, const CostModel&) = default;

private:
    std::uint64_t unit_ = kUnit;
};

// A rate of requests without data per second; converts a cost to the time until the next request.
class CostPace {
public:
    static constexpr std::uint64_t kPerSecondMax = 100'000'000;

    CostPace() = default;  // No rate.
    // REQUIRES: 1 <= per_second <= kPerSecondMax.
    explicit CostPace(std::uint64_t per_second)
        : pace_({.per_second = per_second * kCostOfOne, .burst = 1}, Pace::Unit::kBytes) {}

    Ticks time_of(Cost cost) const { return pace_.cost_of(static_cast<std::uint64_t>(cost)); }

private:
    Pace pace_;
};

}  // namespace fopd::lrs
