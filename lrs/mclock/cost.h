#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lrs/classes/pace.h"
#include "lrs/classes/ticks.h"

namespace fopd::lrs {

// What a request costs, in parts of what one without data does.
using Cost = std::int64_t;

inline constexpr Cost kCostOfOne = 1024;
// More than any request has. What costs is multiplied with is less than 2^29.
inline constexpr Cost kCostMax = Cost{1} << 34;

// One for the request, and one for each so many bytes of its data; null: data costs nothing.
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

// So many requests without data in a second, and what that makes of a cost: the time to the next.
class CostPace {
public:
    static constexpr std::uint64_t kPerSecondMax = 100'000'000;

    CostPace() = default;  // None.
    // Requires: 1 <= per_second <= kPerSecondMax.
    explicit CostPace(std::uint64_t per_second)
        : pace_({.per_second = per_second * kCostOfOne, .burst = 1}, Pace::Unit::kBytes) {}

    Ticks time_of(Cost cost) const { return pace_.cost_of(static_cast<std::uint64_t>(cost)); }

private:
    Pace pace_;
};

}  // namespace fopd::lrs
