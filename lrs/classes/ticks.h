#pragma once

#include <algorithm>
#include <cstdint>

#include "core/time.h"

namespace fopd::lrs {

// Time in sixteenths of a nanosecond: what a request costs is rounded up to a tick, so a million
// requests a second lose 63 us of each second at most, and a time line of 18 years fits.
using Ticks = std::int64_t;

inline constexpr Ticks kTicksPerNs = 16;
inline constexpr Ticks kTicksPerSecond = 1'000'000'000 * kTicksPerNs;
// Two of them can be added. Two years and more: nothing that waits so long is worth a figure.
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
