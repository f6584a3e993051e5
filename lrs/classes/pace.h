#pragma once

#include <cstdint>
#include <optional>

#include "lrs/classes/ticks.h"

namespace fopd::lrs {

// A rate limit: an amount per second, and a burst that may be used at once after a pause.
struct Limit {
    std::uint64_t per_second = 0;
    std::uint64_t burst = 0;

    friend bool operator==(const Limit&, const Limit&) = default;
};

// 10 ms of the rate, but at least 1.
std::uint64_t default_burst(std::uint64_t per_second);

// A limit in the form the bucket uses: the cost of one unit, and the depth, up to which unused time
// accumulates.
class Pace {
public:
    // The unit that is limited: operations are taken one by one, bytes in any number.
    enum class Unit : std::uint8_t { kOperations, kBytes };

    static constexpr std::uint64_t kPerSecondMax = 1'000'000'000'000;
    // The largest burst, in seconds of the rate.
    static constexpr std::uint64_t kBurstSecondsMax = 24UL * 60 * 60;

    Pace() = default;  // No limit.
    // REQUIRES: 1 <= per_second <= kPerSecondMax, 1 <= burst <= per_second * kBurstSecondsMax.
    Pace(const Limit& limit, Unit unit);

    bool is_limit() const { return depth_ > 0; }
    Ticks cost_of(std::uint64_t amount) const;
    Ticks depth() const { return depth_; }

private:
    static constexpr int kFractionBits = 24;

    std::uint64_t cost_ = 0;  // The time of one unit, in ticks with kFractionBits fractional bits.
    Ticks depth_ = 0;
};

// The limits that a rule sets for each of its classes.
struct Limits {
    bool is_blocked = false;
    std::optional<Limit> operations;
    std::optional<Limit> bytes;

    bool is_unlimited() const { return !is_blocked && !operations && !bytes; }
    friend bool operator==(const Limits&, const Limits&) = default;
};

struct Paces {
    Paces() = default;
    explicit Paces(const Limits& limits);

    bool is_blocked = false;
    Pace operations;
    Pace bytes;
};

}  // namespace fopd::lrs
