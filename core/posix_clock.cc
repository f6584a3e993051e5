#include <time.h>

#include "core/clock.h"

namespace fopd::core {

namespace {

std::int64_t read_ns(clockid_t id) {
    timespec time{};
    ::clock_gettime(id, &time);  // Cannot fail for these two clocks.
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Instant PosixClock::now() const {
    return Instant{Duration{read_ns(CLOCK_MONOTONIC)}};
}

WallTime PosixClock::wall() const {
    return WallTime{.unix_ns = read_ns(CLOCK_REALTIME)};
}

}  // namespace fopd::core
