// Goal: what top shows of a name is what that name has done between two looks.
#include "client/top_figures.h"

#include "tests/catch.h"

using namespace fopd::client;

namespace {

TopSample sample(double uptime_s, std::vector<LoadSample> principals) {
    TopSample made;
    made.uptime_s = uptime_s;
    made.has_load = true;
    made.principals = std::move(principals);
    return made;
}

LoadSample load(const char* name, std::uint64_t count, std::uint64_t up_to_ns) {
    return {.name = name, .count = count, .bytes = count * 10, .latency = {{up_to_ns, count}}};
}

LoadRates rates_of(const TopSample& before, const TopSample& now, const std::string& name) {
    const TopRates rates = rates_between(before, now);
    for (const LoadRates& each : rates.principals) {
        if (each.name == name) return each;
    }
    FAIL("no row of " + name);
    return {};
}

}  // namespace

TEST_CASE("fopctl top: a name that is new has begun at 0", "[client]") {
    std::vector<LoadSample> many;
    for (int i = 0; i < 65; ++i) many.push_back(load(std::to_string(i).c_str(), 1000, 7));
    const TopSample before = sample(10, many);
    many[3] = load("new", 8, 1023);  // In the place of another one.
    const TopSample now = sample(12, many);

    const LoadRates rates = rates_of(before, now, "new");
    CHECK(rates.ops == 4);
    CHECK(rates.bytes == 40);
    CHECK(rates.p50_us == Approx(1.023));
    CHECK(rates_of(before, now, "4").ops == 0);
}

TEST_CASE("fopctl top: a name whose counters are smaller has begun at 0 again", "[client]") {
    const TopSample before = sample(10, {load("ann", 1'000'000, 7)});
    const TopSample now = sample(11, {load("ann", 6, 2047)});

    const LoadRates rates = rates_of(before, now, "ann");
    CHECK(rates.ops == 6);
    CHECK(rates.bytes == 60);
    CHECK(rates.p99_us == Approx(2.047));
}
