// Goal: the promises of a volume are proven by tests that can fail. Method: a volume with one of
// its rules left out, by mutate.cmake, lives through what volume_crash_test.cc does, until a
// promise is broken.

#include "tests/catch.h"
#include "tests/store/volume_stage.h"

namespace fopd::store::testing {
namespace {

constexpr std::uint64_t kSeeds = 100;

// Losses of power; starts without an index from a log that has come around; both; what is freed in
// steps; and copies on cartridges.
Plan plan_of(std::uint64_t seed) {
    switch (seed % 5) {
        case 0:
            return {.seed = seed, .boots = 3, .operations = 2000, .orderly = true, .rescue = true};
        case 1:
            return {.seed = seed,
                    .boots = 4,
                    .operations = 300,
                    .cut_within = 9000,
                    .rescue = seed % 8 == 1};
        case 2: return {.seed = seed, .operations = 60, .cut_within = 2500, .in_steps = true};
        case 3: return {.seed = seed, .operations = 60, .cut_within = 2500, .tape = true};
        default: return {.seed = seed};
    }
}

TEST_CASE("store mutant: a promise is broken", "[store]") {
    std::string violation;
    std::uint64_t seed = 0;
    while (violation.empty() && seed < kSeeds) {
        ++seed;
        Remains remains(kDiskBytes);
        violation = carry_out(plan_of(seed), remains);
    }
    CAPTURE(seed);
    REQUIRE(violation != kNothing);
}

}  // namespace
}  // namespace fopd::store::testing
