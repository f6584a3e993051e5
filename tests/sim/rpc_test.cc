// Goal: what clients were promised about their calls holds whatever befalls the network, the nodes
// and the clients. Method: real nodes, and clients that call them at random over the simulated
// network; each kind of fault by itself, and all together at the size of a cluster.

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::ReplayedCluster;

namespace {

// After the faults all is well again: who was cut off finds back, everybody gets everywhere, and
// who leaves leaves nothing behind.
bool all_is_well(Cluster& cluster) {
    return cluster.recover(90s) && cluster.visit_all(60s) && cluster.part_all(30s);
}

// Every few seconds a fault of this kind.
std::vector<Fault> plan_of(Fault::Kind kind, std::uint32_t nodes, std::uint32_t clients) {
    std::vector<Fault> plan;
    for (std::uint32_t i = 0; i < 12; ++i) {
        const bool every = kind != Fault::Kind::kCrashClient && i % 4 == 3;
        plan.push_back({.kind = kind,
                        .at = Instant{5s * (i + 1)},
                        .node = i % nodes,
                        .locality = i % 2,
                        .span = 2s * (i % 5) + 100ms,
                        .client = every ? Fault::kEveryClient : i % clients});
    }
    // One longer than a lease.
    plan[10].span = 50s;
    return plan;
}

}  // namespace

TEST_CASE("sim rpc: without faults every call is done", "[sim]") {
    ReplayedCluster cluster(21, {.nodes = 2, .clients = 4, .client_pause_max = 500ms});
    cluster.start_all();

    const bool kept = cluster.run_for(60s) && all_is_well(cluster);

    INFO(cluster.broken_promise());
    INFO(cluster.book().summary());
    REQUIRE(kept);
    REQUIRE(cluster.book().count("done") > 1000);
    REQUIRE(cluster.book().count("outcome_unknown") == 0);
    REQUIRE(cluster.node(0).events().errors().empty());
    REQUIRE(cluster.node(1).events().errors().empty());
}

TEST_CASE("sim rpc: calls survive each kind of fault", "[sim]") {
    for (int kind = 0; kind <= static_cast<int>(Fault::Kind::kCrashClient); ++kind) {
        const auto which = static_cast<Fault::Kind>(kind);
        CAPTURE(to_string(which));
        ReplayedCluster cluster(100 + static_cast<std::uint64_t>(kind),
                                {.nodes = 3, .clients = 6, .lines = 2, .client_pause_max = 4s});
        cluster.start_all();

        const bool kept = cluster.run_for(65s, plan_of(which, 3, 6)) && all_is_well(cluster);

        INFO(cluster.broken_promise());
        INFO(cluster.book().summary());
        REQUIRE(kept);
        REQUIRE(cluster.faults_carried_out() >= 6);
        REQUIRE(cluster.book().count("done") > 500);
    }
}

TEST_CASE("sim rpc: a call that is given up while queued ends at once", "[sim]") {
    ReplayedCluster cluster(22, {.nodes = 1, .localities = 1, .clients = 2, .quiet_clients = true});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedClient::Wish wish{
        .type = fop::find_fop_type("bulk_echo"), .bytes = 1000, .timeout = 100s};
    // Whoever is cut off in the middle of a transfer holds the only buffer for a while.
    cluster.client(0).call(0, wish);
    const daemon::Locality& locality = *cluster.node(0).node().localities()[0];
    while (locality.buffers().free_count() > 0) cluster.world().step();
    cluster.network().partition({.from = "client-0", .to = "node-0"});

    wish.cancel_after = 1s;
    cluster.client(1).call(0, wish);
    const bool kept = cluster.run_for(1s + 10ms);

    INFO(cluster.broken_promise());
    REQUIRE(kept);
    REQUIRE(locality.buffers().free_count() == 0);
    REQUIRE(cluster.book().count("cancelled") == 1);
}

// As large as the cluster of a machine room; in a release build less than a minute.
TEST_CASE("sim rpc: 16 nodes and 64 clients, faults for 10 000 s", "[.soak]") {
    ReplayedCluster cluster(64, {.nodes = 16, .clients = 64});
    const auto plan = draw_fault_plan(
        core::Random(64),
        {.nodes = 16, .localities = 2, .clients = 64, .length = 10'000s, .fault_count = 1'000});
    cluster.start_all();

    const bool kept = cluster.run_for(10'000s, plan) && all_is_well(cluster);

    INFO(cluster.broken_promise());
    INFO(cluster.book().summary());
    REQUIRE(kept);
    REQUIRE(cluster.book().count("done") > 100'000);
    REQUIRE(cluster.faults_carried_out() > 900);
}
