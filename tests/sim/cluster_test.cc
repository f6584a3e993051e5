// Goal: the harness itself can be trusted: same seed, same run; faults do what they say; a broken
// promise is noticed.

#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::ReplayedCluster;

namespace {

std::uint64_t trace_of(std::uint64_t seed) {
    ReplayedCluster cluster(seed, {.nodes = 4, .localities = 2});
    cluster.start_all();
    const auto plan = draw_fault_plan(cluster.world().random().fork(),
                                      {.nodes = 4, .localities = 2, .length = 120s});
    cluster.run_for(120s, plan);
    cluster.recover(60s);
    return cluster.world().trace_hash();
}

}  // namespace

TEST_CASE("sim cluster: the same seed gives the same run", "[sim]") {
    const std::uint64_t first = trace_of(42);

    REQUIRE(trace_of(42) == first);
    REQUIRE(trace_of(43) != first);
}

TEST_CASE("sim cluster: a node that turns and does not feed its watchdog breaks a promise",
          "[sim]") {
    // The watchdog's patience is shorter than any node could keep to.
    ReplayedCluster cluster(1, {.nodes = 1, .watchdog = 500us});
    cluster.start_all();

    REQUIRE_FALSE(cluster.run_for(10s));
    REQUIRE(cluster.broken_promise() == "node-0 turned but did not feed the watchdog");
}

TEST_CASE("sim cluster: every kind of fault is carried out", "[sim]") {
    for (int kind = 0; kind <= static_cast<int>(Fault::Kind::kRestart); ++kind) {
        const Fault fault{.kind = static_cast<Fault::Kind>(kind), .at = Instant{10s}, .span = 5s};
        CAPTURE(describe(fault));
        ReplayedCluster cluster(5, {.nodes = 1});
        cluster.start_all();

        const bool kept = cluster.run_for(30s, {fault}) && cluster.recover(60s);

        INFO(cluster.broken_promise());
        REQUIRE(kept);
        REQUIRE(cluster.faults_carried_out() == 1);
    }
}

TEST_CASE("sim cluster: 16 idle nodes with heartbeats for 10 000 s", "[sim]") {
    ReplayedCluster cluster(16, {.nodes = 16, .localities = 2});
    cluster.start_all();

    REQUIRE(cluster.run_for(10'000s));

    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
        CAPTURE(i);
        REQUIRE(cluster.node(i).manager().fed_count() >= 9'990);
        REQUIRE(cluster.node(i).events().errors().empty());
    }
}
