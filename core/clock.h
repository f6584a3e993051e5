#pragma once

#include "core/time.h"

namespace fopd::core {

// Source of the current time. Thread-safe.
class Clock {
public:
    virtual ~Clock() = default;
    virtual Instant now() const = 0;
    virtual WallTime wall() const = 0;
};

// CLOCK_MONOTONIC and CLOCK_REALTIME.
class PosixClock final : public Clock {
public:
    Instant now() const override;
    WallTime wall() const override;
};

}  // namespace fopd::core
