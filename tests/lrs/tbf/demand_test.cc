// Goal: what a class wants is told at once when it changes much, and is steady otherwise.
// Method: counts of intervals, one after the other.

#include "lrs/tbf/demand.h"

#include <cmath>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

const Pace kPace({.per_second = 10'000, .burst = 100}, Pace::Unit::kOperations);

std::uint64_t next(SteadyDemand& steady, std::uint64_t arrived, std::uint64_t waiting) {
    return steady.next({.arrived = arrived, .waiting = waiting, .one = 1}, kPace, 100ms, 100ms);
}
double part(std::uint64_t demand) {
    return static_cast<double>(demand) / static_cast<double>(kWholeDemand);
}

}  // namespace

TEST_CASE("lrs tbf demand: it is in parts of the rate", "[lrs]") {
    SteadyDemand steady;
    CHECK(part(next(steady, 500, 0)) == Approx(0.5));
    SteadyDemand waiting;
    CHECK(part(next(waiting, 500, 1000)) == Approx(1.5));
    // A longer time needs more arrivals for the same, and waiting ones count as before.
    SteadyDemand longer;
    CHECK(part(longer.next({.arrived = 500, .waiting = 1000, .one = 1}, kPace, 200ms, 100ms)) ==
          Approx(1.25));
    SteadyDemand none;
    CHECK(next(none, 0, 0) == 0);
    SteadyDemand huge;
    CHECK(next(huge, ~std::uint64_t{0}, ~std::uint64_t{0}) == kDemandMax);
}

TEST_CASE("lrs tbf demand: a large change is told at once, the end too", "[lrs]") {
    SteadyDemand steady;
    next(steady, 500, 0);
    CHECK(part(next(steady, 2000, 0)) == Approx(2));
    CHECK(part(next(steady, 100, 0)) == Approx(0.1));
    CHECK(next(steady, 0, 0) == 0);
    CHECK(part(next(steady, 0, 7)) == Approx(0.007));
}

TEST_CASE("lrs tbf demand: a change that is there twice is told, a single one is not", "[lrs]") {
    SteadyDemand steady;
    next(steady, 500, 0);
    CHECK(part(next(steady, 700, 0)) < 0.53);
    CHECK(part(next(steady, 500, 0)) == Approx(0.52).margin(0.01));
    CHECK(part(next(steady, 700, 0)) < 0.56);
    CHECK(part(next(steady, 700, 0)) == Approx(0.7));
    // Two accidents to different sides are none.
    CHECK(part(next(steady, 500, 0)) > 0.6);
    CHECK(part(next(steady, 900, 0)) < 0.75);
}

TEST_CASE("lrs tbf demand: accidents of arrival hardly move it, and it finds the mean", "[lrs]") {
    SteadyDemand steady;
    core::Random random(3);
    std::uint64_t last = next(steady, 1000, 0);
    double moved = 0;
    double sum = 0;
    constexpr int kCount = 2000;
    for (int i = 0; i < kCount; ++i) {
        const std::uint64_t now = next(steady, 960 + random.below(81), 0);
        moved += std::abs(part(now) - part(last));
        sum += part(now);
        last = now;
    }
    CHECK(sum / kCount == Approx(1).margin(0.01));
    // What is drawn moves by a thirty-seventh.
    CHECK(moved / kCount < 0.006);
}
