#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "tests/catch.h"
#include "tests/slowness.h"

namespace fopd::sim::testing {

// A number that whoever runs a swarm has set.
inline std::optional<std::uint64_t> number_in(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
}

// Runs `few` seeds, or those that FOPD_SEED and FOPD_SWARM_SEEDS name. A fourth of the few, and all
// of those named, run twice and must have the same trace.
inline void run_swarm(std::uint64_t few, std::uint64_t (*run)(std::uint64_t seed)) {
    const auto first = number_in("FOPD_SEED");
    const auto many = number_in("FOPD_SWARM_SEEDS");
    const std::uint64_t begin = first.value_or(1);
    const std::uint64_t end = begin + many.value_or(first ? 1 : fopd::testing::few_of(few));
    for (std::uint64_t seed = begin; seed < end; ++seed) {
        const std::uint64_t hash = run(seed);
        if (!first && !many && seed % 4 != 0) continue;
        CAPTURE(seed);
        REQUIRE(run(seed) == hash);
    }
}

}  // namespace fopd::sim::testing
