// Goal: the swarm of nodes with tapes can fail. Method: a node with one of its rules left out, by
// mutate.cmake, lives through it until a promise is broken.
// With FOPD_SWARM_SEEDS that many seeds are run, even after the first that fails; `caught` says how
// many fail.

#include <cstdint>
#include <string>

#include "tests/catch.h"
#include "tests/sim/seeds.h"
#include "tests/sim/swarm_worlds.h"

using namespace fopd::sim::testing;

TEST_CASE("sim tape mutant: a promise is broken", "[sim]") {
    constexpr std::uint64_t kMutantSeeds = 300;
    const std::uint64_t many = number_in("FOPD_SWARM_SEEDS").value_or(0);
    std::string broken_promise;
    std::uint64_t caught = 0;
    std::uint64_t seed = 0;
    while (seed < many || (caught == 0 && seed < kMutantSeeds)) {
        ++seed;
        const auto broken = broken_with_tapes(seed);
        if (!broken) continue;
        ++caught;
        broken_promise = *broken;
    }
    CAPTURE(seed, broken_promise);
    REQUIRE(caught > 0);
}
