// Goal: the swarm of clients that share objects can fail. Method: a node with one of its rules left
// out, by mutate.cmake, lives through it until a promise is broken.

#include <cstdint>

#include "tests/catch.h"
#include "tests/sim/swarm_worlds.h"

using namespace fopd::sim::testing;

TEST_CASE("sim mutant: a promise is broken", "[sim]") {
    constexpr std::uint64_t kMutantSeeds = 300;
    bool kept = true;
    std::uint64_t seed = 0;
    while (kept && seed < kMutantSeeds) {
        ++seed;
        kept = keeps_shared_objects(seed);
    }
    CAPTURE(seed);
    REQUIRE_FALSE(kept);
}
