// Goal: whoever sees a simulated test fail can have the failure again.
// Method: fails on purpose, hidden from ordinary runs; replay_test.sh looks at what is printed, and
// runs it.

#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"

TEST_CASE("sim replay: it's printed, with commas, [brackets] and all", "[.replay]") {
    const fopd::sim::testing::ReplayedCluster cluster(
        7, {.nodes = 1}, fopd::sim::testing::ReplayedCluster::Seed::kOfSwarm);

    REQUIRE(cluster.node_count() == 2);
}
