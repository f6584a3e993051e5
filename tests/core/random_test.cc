#include "core/random.h"

#include <array>

#include "tests/catch.h"

using namespace fopd::core;

// The values of the published xoshiro256** with its state filled by splitmix64. They never change:
// recorded seeds must replay.
TEST_CASE("core random: the same seed gives the same numbers on every machine", "[core]") {
    Random zero(0);
    REQUIRE(zero.next() == 0x99ec5f36cb75f2b4ULL);
    REQUIRE(zero.next() == 0xbf6e1f784956452aULL);
    REQUIRE(zero.next() == 0x1a5f849d4933e6e0ULL);
    Random answer(42);
    REQUIRE(answer.next() == 0x15780b2e0c2ec716ULL);
}

TEST_CASE("core random: below and between stay inside, and reach every value", "[core]") {
    Random random(1);
    std::array<int, 7> seen{};
    for (int i = 0; i < 70'000; ++i) ++seen[random.below(7)];
    for (const int count : seen) {
        REQUIRE(count > 9'500);
        REQUIRE(count < 10'500);
    }
    REQUIRE(random.below(1) == 0);
    for (int i = 0; i < 1000; ++i) {
        const std::int64_t value = random.between(-3, 3);
        REQUIRE(value >= -3);
        REQUIRE(value <= 3);
        REQUIRE(random.below(UINT64_MAX) < UINT64_MAX);
    }
    REQUIRE(random.between(5, 5) == 5);
    REQUIRE(random.between(INT64_MIN, INT64_MIN) == INT64_MIN);
    bool negative = false;
    bool positive = false;
    for (int i = 0; i < 100; ++i) {
        (random.between(INT64_MIN, INT64_MAX) < 0 ? negative : positive) = true;
    }
    REQUIRE((negative && positive));
}

TEST_CASE("core random: chances come true as often as they say", "[core]") {
    Random random(2);
    int hits = 0;
    for (int i = 0; i < 100'000; ++i) hits += random.chance_ppm(250'000) ? 1 : 0;
    REQUIRE(hits > 24'000);
    REQUIRE(hits < 26'000);
    REQUIRE(!random.chance_ppm(0));
    REQUIRE(random.chance_ppm(1'000'000));
}

TEST_CASE("core random: a fork draws numbers of its own", "[core]") {
    Random one(3);
    Random other(3);
    Random fork = one.fork();
    other.next();

    REQUIRE(fork.next() != one.next());
    other.next();
    REQUIRE(one.next() == other.next());
}

TEST_CASE("core random: mix depends on both and on their order", "[core]") {
    REQUIRE(mix(1, 2) != mix(2, 1));
    REQUIRE(mix(mix(0, 1), 2) != mix(mix(0, 2), 1));
    REQUIRE(mix(0, 0) != 0);
}
