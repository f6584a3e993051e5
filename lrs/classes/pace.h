#pragma once

#include <cstdint>
#include <optional>

#include "lrs/classes/ticks.h"

namespace fopd::lrs {

// How much of something may be done: so much in each second, and so much at once after a pause.
struct Limit {
    std::uint64_t per_second = 0;
    std::uint64_t burst = 0;

    friend bool operator==(const Limit&, const Limit&) = default;
};

// 10 ms of the rate, and at least one.
std::uint64_t default_burst(std::uint64_t per_second);

// A limit as the bucket computes with it: what one of the things costs, and how much of the cost
// may be borrowed from the past.
class Pace {
public:
    // What is limited: operations are taken one by one, bytes by any number.
    enum class Unit : std::uint8_t { kOperations, kBytes };

    static constexpr std::uint64_t kPerSecondMax = 1'000'000'000'000;
    // Seconds of the rate.
    static constexpr std::uint64_t kBurstSecondsMax = 24UL * 60 * 60;

    Pace() = default;  // No limit.
    // Requires: 1 <= per_second <= kPerSecondMax, 1 <= burst <= per_second * kBurstSecondsMax.
    Pace(const Limit& limit, Unit unit);

    bool is_limit() const { return depth_ > 0; }
    Ticks cost_of(std::uint64_t amount) const;
    Ticks depth() const { return depth_; }

private:
    static constexpr int kFractionBits = 24;

    std::uint64_t cost_ = 0;  // Of one, in ticks with kFractionBits behind the point.
    Ticks depth_ = 0;
};

// What a rule grants each of its classes.
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
