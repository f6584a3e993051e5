#pragma once

#include <algorithm>
#include <cstdint>

#include "core/time.h"

namespace fopd::lrs {

// Time in sixteenths of a nanosecond. A request's cost is rounded up to a tick, so at a million
// requests a second at most 63 us of each second are lost, and the range is 18 years.
using Ticks = std::int64_t;

inline constexpr Ticks kTicksPerNs = 16;
inline constexpr Ticks kTicksPerSecond = 1'000'000'000 * kTicksPerNs;
// The sum of two does not overflow. More than two years, longer than any useful wait.
inline constexpr Ticks kTicksMax = Ticks{1} << 60;
inline constexpr Ticks kNeverTicks = Ticks{1} << 62;

constexpr Ticks ticks_at(Instant instant) {
    return std::min(instant.time_since_epoch().count(), kNeverTicks / kTicksPerNs) * kTicksPerNs;
}
// The first instant that is not before `ticks`.
constexpr Instant instant_at(Ticks ticks) {
    if (ticks >= kNeverTicks) return kNever;
    const Ticks whole = ticks / kTicksPerNs;
    return Instant(Duration(whole * kTicksPerNs < ticks ? whole + 1 : whole));
}

}  // namespace fopd::lrs
