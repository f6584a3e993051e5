#include "lrs/classes/pace.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

std::uint64_t default_burst(std::uint64_t per_second) {
    return std::max<std::uint64_t>(1, per_second / 100);
}

Pace::Pace(const Limit& limit, Unit unit) {
    ENSURE(limit.per_second >= 1);
    ENSURE(limit.per_second <= kPerSecondMax);
    ENSURE(limit.burst >= 1);
    ENSURE(limit.burst / kBurstSecondsMax <= limit.per_second);
    const Wide second = static_cast<Wide>(kTicksPerSecond) << kFractionBits;
    cost_ = static_cast<std::uint64_t>((second + limit.per_second - 1) / limit.per_second);
    // The cost of n operations is exactly n times the rounded cost of one.
    if (unit == Unit::kOperations) cost_ = static_cast<std::uint64_t>(cost_of(1)) << kFractionBits;
    depth_ = cost_of(limit.burst);
}

Ticks Pace::cost_of(std::uint64_t amount) const {
    const Wide cost = static_cast<Wide>(cost_) * amount;
    const Wide ticks = (cost + ((Wide{1} << kFractionBits) - 1)) >> kFractionBits;
    return ticks > static_cast<Wide>(kTicksMax) ? kTicksMax : static_cast<Ticks>(ticks);
}

Paces::Paces(const Limits& limits) : is_blocked(limits.is_blocked) {
    if (limits.operations) operations = Pace(*limits.operations, Pace::Unit::kOperations);
    if (limits.bytes) bytes = Pace(*limits.bytes, Pace::Unit::kBytes);
}

}  // namespace fopd::lrs
