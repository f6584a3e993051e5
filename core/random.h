#pragma once

#include <array>
#include <cstdint>

namespace fopd::core {

// A seeded generator (xoshiro256**): the same seed gives the same numbers on every machine. The
// only source of randomness below main(); not for secrets.
class Random {
public:
    explicit Random(std::uint64_t seed);

    std::uint64_t next();
    // Uniform in [0, bound - 1]. REQUIRES: bound > 0.
    std::uint64_t below(std::uint64_t bound);
    // Uniform in [low, high]. REQUIRES: low <= high.
    std::int64_t between(std::int64_t low, std::int64_t high);
    // True in `parts` of a million cases.
    bool chance_ppm(std::uint32_t parts) { return below(1'000'000) < parts; }
    // A separate generator for a part of the system, so that its draws do not affect those of other
    // parts.
    Random fork() { return Random(next()); }

private:
    std::array<std::uint64_t, 4> state_;
};

// Mixes a number into a running 64-bit hash; for traces, not for tables whose keys an attacker can
// choose.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value);

}  // namespace fopd::core
