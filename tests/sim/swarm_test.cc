// Goal: whatever befalls the nodes, their clients and the network between them, in whatever order,
// they keep their promises: ready again after the faults, the watchdog fed whenever they turn,
// calls that end as they may, nothing left behind, stopped when told to; and the same seed is the
// same run. Method: many seeds, each a cluster, a plan of faults and an interleaving of its own.
// FOPD_SWARM_SEEDS sets how many; FOPD_SEED runs one. Each of these runs twice; without them, every
// fourth of a few does. Seeds with clients take longer, so there are fewer of them.

#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"
#include "tests/sim/seeds.h"
#include "tests/slowness.h"

namespace swarm_test {

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::number_in;
using fopd::sim::testing::ReplayedCluster;

namespace {

constexpr std::uint64_t kFewSeeds = fopd::testing::few_of(100);
constexpr std::uint64_t kFewSeedsWithClients = fopd::testing::few_of(5);
constexpr std::uint64_t kSeedsForEachWithClients = 10;

struct SwarmPlan {
    std::uint64_t first_seed = 1;
    std::uint64_t count = 1;
    std::uint64_t twice_every = 4;  // Of so many seeds one is run twice.
};

// `few` seeds, or one for each `seeds_for_each` of those that are asked for.
SwarmPlan swarm_plan(std::uint64_t few, std::uint64_t seeds_for_each) {
    if (const auto seed = number_in("FOPD_SEED"); seed.has_value()) {
        return {.first_seed = *seed, .count = 1, .twice_every = 1};
    }
    if (const auto count = number_in("FOPD_SWARM_SEEDS"); count.has_value()) {
        return {.count = (*count + seeds_for_each - 1) / seeds_for_each, .twice_every = 1};
    }
    return {.count = few};
}

// Both return the trace hash of a run in which every promise was kept.
std::uint64_t run_seed(std::uint64_t seed) {
    core::Random random(seed);
    const auto nodes = static_cast<std::uint32_t>(1 + random.below(4));
    const auto localities = static_cast<std::uint32_t>(1 + random.below(4));
    const auto disks = static_cast<std::uint32_t>(random.below(3));
    ReplayedCluster cluster(seed,
                            {.nodes = nodes,
                             .localities = localities,
                             .disks = disks,
                             .drain_timeout = Duration{random.between(0, Duration(40s).count())}},
                            ReplayedCluster::Seed::kOfSwarm);
    const auto plan = draw_fault_plan(random.fork(), {.nodes = nodes, .localities = localities});
    cluster.start_all();

    const bool kept =
        cluster.run_for(600s, plan) && cluster.recover(120s) && cluster.stop_all(120s);

    INFO(cluster.broken_promise());
    REQUIRE(kept);
    return cluster.world().trace_hash();
}

std::uint64_t run_seed_with_clients(std::uint64_t seed) {
    core::Random random(seed);
    const auto upto = [&random](std::uint64_t most) {
        return static_cast<std::uint32_t>(1 + random.below(most));
    };
    const ClusterOptions options{
        .nodes = upto(4),
        .localities = upto(3),
        .drain_timeout = Duration{random.between(0, Duration(40s).count())},
        .clients = upto(8),
        .lines = upto(3),
        .client_pause_max = Duration{random.between(Duration(500ms).count(), Duration(8s).count())},
        .wire = draw_wire(seed)};
    ReplayedCluster cluster(seed, options, ReplayedCluster::Seed::kOfSwarm);
    const auto plan = draw_fault_plan(random.fork(), {.nodes = options.nodes,
                                                      .localities = options.localities,
                                                      .clients = options.clients,
                                                      .length = 200s,
                                                      .fault_count = upto(60)});
    cluster.start_all();

    const bool kept = cluster.run_for(200s, plan) && cluster.recover(90s) &&
                      cluster.visit_all(60s) && cluster.part_all(30s) && cluster.stop_all(120s);

    INFO(cluster.broken_promise());
    INFO(cluster.book().summary());
    REQUIRE(kept);
    return cluster.world().trace_hash();
}

void run_swarm(std::uint64_t (*run)(std::uint64_t seed), const SwarmPlan& swarm) {
    for (std::uint64_t i = 0; i < swarm.count; ++i) {
        const std::uint64_t seed = swarm.first_seed + i;
        const std::uint64_t hash = run(seed);
        if (i % swarm.twice_every != 0) continue;
        CAPTURE(seed);

        REQUIRE(run(seed) == hash);
    }
}

}  // namespace

TEST_CASE("sim swarm: nodes survive any plan of faults, and a seed is one run", "[sim][swarm]") {
    run_swarm(&run_seed, swarm_plan(kFewSeeds, 1));
}

TEST_CASE("sim swarm: calls end as they may under any plan of faults", "[sim][swarm]") {
    run_swarm(&run_seed_with_clients, swarm_plan(kFewSeedsWithClients, kSeedsForEachWithClients));
}

}  // namespace swarm_test
