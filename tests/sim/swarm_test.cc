// Goal: whatever befalls the nodes, in whatever order, they keep their promises: ready again after
// the faults, the watchdog fed whenever they turn, stopped when told to. Method: many seeds, each a
// cluster, a plan of faults and an interleaving of its own. FOPD_SWARM_SEEDS sets how many;
// FOPD_SEED runs one.

#include <cstdlib>
#include <optional>

#include "sim/cluster.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::sim;

namespace {

std::optional<std::uint64_t> number_in(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
}

std::vector<std::uint64_t> swarm_seeds(std::uint64_t count_by_default) {
    if (const auto seed = number_in("FOPD_SEED"); seed.has_value()) return {*seed};
    const std::uint64_t count = number_in("FOPD_SWARM_SEEDS").value_or(count_by_default);
    std::vector<std::uint64_t> seeds;
    for (std::uint64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
    return seeds;
}

}  // namespace

TEST_CASE("sim swarm: nodes survive any plan of faults", "[sim][swarm]") {
    for (const std::uint64_t seed : swarm_seeds(200)) {
        core::Random random(seed);
        const auto nodes = static_cast<std::uint32_t>(1 + random.below(4));
        const auto localities = static_cast<std::uint32_t>(1 + random.below(4));
        Cluster cluster(seed,
                        {.nodes = nodes,
                         .localities = localities,
                         .drain_timeout = Duration{random.between(0, Duration(40s).count())}});
        const auto plan =
            draw_fault_plan(random.fork(), {.nodes = nodes, .localities = localities});
        cluster.start_all();

        const bool kept =
            cluster.run_for(600s, plan) && cluster.recover(120s) && cluster.stop_all(120s);

        INFO(replay_hint(seed, "sim swarm: nodes survive any plan of faults"));
        INFO(cluster.broken_promise());
        REQUIRE(kept);
    }
}
