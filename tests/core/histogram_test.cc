// Goal: percentiles are right to a sixteenth, whatever was recorded.
// Method: against a sorted list of the same values.

#include "core/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::core;

namespace {

// A value of any magnitude.
std::uint64_t draw(Random& random) {
    return random.next() >> random.below(64);
}

}  // namespace

TEST_CASE("core histogram: percentiles are at most a sixteenth too large, never too small",
          "[core]") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        Random random(seed);
        Histogram histogram;
        std::vector<std::uint64_t> values(1 + random.below(2000));
        for (std::uint64_t& value : values) {
            value = draw(random);
            histogram.record(value);
        }
        std::ranges::sort(values);
        for (const double share : {0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
            const double rank = std::ceil(share * static_cast<double>(values.size()));
            const std::uint64_t exact = values[rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1];
            const std::uint64_t got = histogram.percentile(share);
            CAPTURE(seed, share, exact, got);
            REQUIRE(got >= exact);
            REQUIRE(got - exact <= exact / 16);
        }
        REQUIRE(histogram.percentile(1.0) == values.back());
        REQUIRE(histogram.max() == values.back());
        REQUIRE(histogram.count() == values.size());
    }
}

TEST_CASE("core histogram: small values are exact, the largest fits", "[core]") {
    Histogram histogram;
    REQUIRE(histogram.percentile(0.5) == 0);
    for (std::uint64_t value = 0; value < 32; ++value) histogram.record(value);
    for (std::uint64_t value = 0; value < 32; ++value) {
        REQUIRE(histogram.percentile(static_cast<double>(value + 1) / 32) == value);
        REQUIRE(histogram.count_up_to(value) == value + 1);
    }

    constexpr auto kLargest = std::numeric_limits<std::uint64_t>::max();
    histogram.record(kLargest);
    REQUIRE(histogram.percentile(1.0) == kLargest);
    REQUIRE(histogram.count_up_to(kLargest) == 33);
    REQUIRE(histogram.count_up_to(kLargest - 1) == 32);
}

TEST_CASE("core histogram: powers of two and their neighbours fall where they belong", "[core]") {
    for (unsigned bits = 0; bits < 64; ++bits) {
        for (const std::int64_t around : {-1, 0, 1}) {
            const std::uint64_t value = (1ULL << bits) + static_cast<std::uint64_t>(around);
            Histogram histogram;
            histogram.record(value);
            histogram.record(std::numeric_limits<std::uint64_t>::max());
            const std::uint64_t got = histogram.percentile(0.5);
            CAPTURE(value, got);
            REQUIRE(got >= value);
            REQUIRE(got - value <= value / 16);
        }
    }
}

TEST_CASE("core histogram: merging is recording everything in one", "[core]") {
    Random random(5);
    Histogram all;
    Histogram one;
    Histogram other;
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t value = draw(random) >> 10;
        all.record(value);
        (random.below(2) == 0 ? one : other).record(value);
    }

    one.merge(other);

    REQUIRE(one.count() == all.count());
    REQUIRE(one.sum() == all.sum());
    REQUIRE(one.max() == all.max());
    for (int share = 0; share <= 100; ++share) {
        REQUIRE(one.percentile(share / 100.0) == all.percentile(share / 100.0));
    }
}

TEST_CASE("core histogram: a span that went backwards counts as none", "[core]") {
    Histogram histogram;
    histogram.record(Duration{-5});
    histogram.record(Duration{7});

    REQUIRE(histogram.count_up_to(0) == 1);
    REQUIRE(histogram.max() == 7);
}
