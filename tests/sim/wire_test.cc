// Goal: the simulated world also has the frames that travel over TCP, written, cut into parts and
// parsed by the code that real nodes use. Method: clients and nodes over each wire, with and
// without faults. The swarms draw the wire from their seeds.

#include <array>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"
#include "tests/sim/replayed_stage.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::ReplayedCluster;
using fopd::sim::testing::ReplayedStage;

namespace {

Wire any_tcp() {
    const Wire wire = GENERATE(Wire::kSealed, Wire::kEncrypted);
    CAPTURE(wire == Wire::kEncrypted);
    return wire;
}

constexpr std::array kFaults{
    Fault::Kind::kCrash,       Fault::Kind::kStallNode,     Fault::Kind::kRestart,
    Fault::Kind::kDelay,       Fault::Kind::kStallLink,     Fault::Kind::kLose,
    Fault::Kind::kLoseAtNode,  Fault::Kind::kLoseAtClient,  Fault::Kind::kPartition,
    Fault::Kind::kBlockToNode, Fault::Kind::kBlockToClient, Fault::Kind::kRefuseConnects,
    Fault::Kind::kCrashClient};

// The trace hash of a run in which every fault came.
std::uint64_t run_all_faults(Wire wire) {
    ReplayedCluster cluster(31, {.nodes = 2, .clients = 3, .client_pause_max = 2s, .wire = wire});
    std::vector<Fault> plan;
    for (std::uint32_t i = 0; i < kFaults.size(); ++i) {
        plan.push_back({.kind = kFaults[i],
                        .at = Instant{4s * (i + 1)},
                        .node = i % 2,
                        .span = 3s,
                        .client = i % 3});
    }
    cluster.start_all();
    const bool kept = cluster.run_for(60s, plan) && cluster.recover(90s) &&
                      cluster.visit_all(60s) && cluster.part_all(30s) && cluster.stop_all(60s);
    INFO(cluster.broken_promise());
    INFO(cluster.book().summary());
    REQUIRE(kept);
    REQUIRE(cluster.faults_carried_out() == plan.size());
    REQUIRE(cluster.book().count("done") > 200);
    return cluster.world().trace_hash();
}

}  // namespace

TEST_CASE("sim wire: without faults every call is done in frames that are cut into parts",
          "[sim]") {
    ReplayedCluster cluster(
        30, {.nodes = 2, .clients = 3, .client_pause_max = 500ms, .wire = any_tcp()});
    cluster.start_all();

    const bool kept = cluster.run_for(30s) && cluster.part_all(30s) && cluster.stop_all(60s);

    INFO(cluster.broken_promise());
    INFO(cluster.book().summary());
    REQUIRE(kept);
    const std::uint64_t done = cluster.book().count("done");
    REQUIRE(done > 300);
    REQUIRE(cluster.sockets()->received().receives > 2 * done);
    for (std::uint32_t i = 0; i < 2; ++i) REQUIRE(cluster.node(i).events().errors().empty());
}

TEST_CASE("sim wire: calls over TCP survive each kind of fault, and a seed is one run", "[sim]") {
    const Wire wire = any_tcp();

    const std::uint64_t hash = run_all_faults(wire);

    REQUIRE(run_all_faults(wire) == hash);
}

TEST_CASE("sim wire: replies about objects are true over TCP", "[sim]") {
    ReplayedStage stage(32, {.wire = any_tcp()});
    stage.must(stage.start());
    constexpr std::array kKinds{ObjectFault::Kind::kCrash, ObjectFault::Kind::kLose,
                                ObjectFault::Kind::kStallToUser, ObjectFault::Kind::kCrashUser};
    for (std::uint32_t round = 0; round < kKinds.size(); ++round) {
        stage.work(2, 15);
        stage.must(
            stage.play({{.kind = kKinds[round], .after = 15, .span = 200ms, .user = round % 2}}));
        stage.must(stage.settle());
    }
    stage.must(stage.empty());
    stage.must(stage.end());
    INFO(stage.book().summary());
    REQUIRE(stage.book().count("write done") > 20);
    REQUIRE(stage.book().count("read done") > 20);
}

TEST_CASE("sim wire: the first seeds of a swarm have every wire", "[sim]") {
    std::set<Wire> drawn;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) drawn.insert(draw_wire(seed));
    REQUIRE(drawn.size() == 3);
}
