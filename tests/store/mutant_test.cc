// Goal: the promises of a volume are proven by tests that can fail. Method: a volume with one of
// its rules left out, by mutate.cmake, lives through what volume_crash_test.cc does, until a
// promise is broken.

#include <cstdint>
#include <string>

#include "tests/catch.h"
#include "tests/store/mutant_worlds.h"

TEST_CASE("store mutant: a promise is broken", "[store]") {
    constexpr std::uint64_t kSeeds = 100;
    std::string violation;
    std::uint64_t seed = 0;
    while (violation.empty() && seed < kSeeds) {
        ++seed;
        violation = fopd::store::testing::violation_with(seed);
    }
    CAPTURE(seed);
    REQUIRE(violation != "");
}
