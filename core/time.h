#pragma once

#include <chrono>
#include <cstdint>

namespace fopd {

// A span of time.
using Duration = std::chrono::nanoseconds;

// The time line of a world: CLOCK_MONOTONIC in the real one, virtual in the simulated one. It has
// no now(): the time is read from a core::Clock or a core::Reactor passed in.
struct TimeLine {
    using rep = Duration::rep;
    using period = Duration::period;
    using duration = Duration;
    using time_point = std::chrono::time_point<TimeLine, Duration>;
    static constexpr bool is_steady = true;
};

// A point on the time line.
using Instant = TimeLine::time_point;

// Later than every deadline: "no deadline".
inline constexpr Instant kNever = Instant::max();

// Nanoseconds since 1970 UTC, for logs and records only; must not affect decisions.
struct WallTime {
    std::int64_t unix_ns = 0;
};

using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

// For display and metrics, never for arithmetic on deadlines.
constexpr double in_seconds(Duration span) {
    return std::chrono::duration<double>(span).count();
}
// The other way, rounded towards zero.
constexpr Duration from_seconds(double seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// The end of a wait of `span` that starts at `from`; kNever instead of an overflow.
constexpr Instant after(Instant from, Duration span) {
    if (span.count() > 0 && from > kNever - span) return kNever;
    return from + span;
}

}  // namespace fopd
