#include "core/random.h"

#include <bit>

#include "core/ensure.h"

namespace fopd::core {

namespace {

std::uint64_t split_mix(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = split_mix(seed);
}

std::uint64_t Random::next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
    ENSURE(bound > 0);
    // Draws from the incomplete last interval of the range are rejected, so that all results are
    // equally likely.
    const std::uint64_t uneven = (0 - bound) % bound;
    for (;;) {
        const std::uint64_t draw = next();
        if (draw >= uneven) return draw % bound;
    }
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
    ENSURE(low <= high);
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const std::uint64_t offset = span == UINT64_MAX ? next() : below(span + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    std::uint64_t state = hash ^ std::rotl(value, 29);
    return split_mix(state);
}

}  // namespace fopd::core
