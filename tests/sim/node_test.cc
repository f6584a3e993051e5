// Goal: the life of one daemon, each turn of it: start, watch, reload, drain, stop, in any order
// and at any moment. Method: the real Node in the simulated world, where minutes take microseconds.

#include <optional>
#include <string>

#include "core/remote.h"
#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"

using namespace fopd;
using namespace fopd::sim;
using daemon::NodeState;
using fopd::sim::testing::ReplayedCluster;

namespace {

Task<void> work_for(core::Reactor* reactor, Duration span, bool* done) {
    const auto slept = co_await reactor->sleep_for(span);
    *done = slept.has_value();
}

// Something that runs on a locality on behalf of a client, until it is done.
void begin_work(SimulatedNode& node, std::uint32_t index, Duration span, bool* done) {
    daemon::Locality& locality = *node.node().localities()[index];
    locality.reactor().spawn(locality.work(), work_for(&locality.reactor(), span, done));
}

daemon::NodeReload::Outcome reload(ReplayedCluster& cluster, SimulatedNode& node) {
    std::optional<daemon::NodeReload::Outcome> result;
    node.reload([&result](const daemon::NodeReload::Outcome& reloaded) { result = reloaded; });
    cluster.run_for(1s);
    REQUIRE(result.has_value());
    return *result;
}

}  // namespace

TEST_CASE("sim node: it is ready at once and says so once", "[sim]") {
    ReplayedCluster cluster(1, {.nodes = 1});
    cluster.start_all();

    cluster.run_for(1s);

    SimulatedNode& node = cluster.node(0);
    REQUIRE(node.node().state() == NodeState::kReady);
    REQUIRE(node.node().life().ready_at() < Instant{500ms});
    REQUIRE(node.manager().ready_count() == 1);
    REQUIRE(node.manager().status() == "ready");
    REQUIRE(node.events().count("daemon.ready") == 1);
}

TEST_CASE("sim node: the watchdog is fed while every locality turns", "[sim]") {
    ReplayedCluster cluster(2, {.nodes = 1, .localities = 4});
    cluster.start_all();

    REQUIRE(cluster.run_for(600s));

    const SimulatedManager& manager = cluster.node(0).manager();
    REQUIRE(manager.fed_count() >= 590);
    REQUIRE(manager.longest_hunger() <= 3s);
}

TEST_CASE("sim node: one locality that does not turn starves the watchdog and is named", "[sim]") {
    ReplayedCluster cluster(3, {.nodes = 1, .localities = 2});
    cluster.start_all();
    cluster.run_for(5s);
    SimulatedNode& node = cluster.node(0);
    const std::uint64_t fed = node.manager().fed_count();

    cluster.world().stall(node.locality(1), after(cluster.world().now(), 9s));
    cluster.run_for(8s);

    REQUIRE(node.manager().fed_count() <= fed + 1);
    REQUIRE(node.events().count("daemon.locality_stuck") == 1);
    REQUIRE(node.node().watch().silent_for(1) > daemon::LocalityWatch::kStuckAfter);
    REQUIRE(node.node().watch().silent_for(0) <= 2s);

    cluster.run_for(5s);
    REQUIRE(node.events().count("daemon.locality_turns_again") == 1);
    REQUIRE(node.manager().fed_count() > fed + 1);
}

TEST_CASE("sim node: a drain waits for running fops and refuses new ones", "[sim]") {
    ReplayedCluster cluster(4, {.nodes = 1, .localities = 2});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedNode& node = cluster.node(0);
    bool done = false;
    begin_work(node, 1, 12s, &done);

    node.drain();
    cluster.run_for(10s);
    REQUIRE(node.node().state() == NodeState::kDraining);
    REQUIRE(node.node().localities()[0]->work().closed());

    cluster.run_for(5s);
    REQUIRE(node.node().state() == NodeState::kDrained);
    REQUIRE(done);
}

TEST_CASE("sim node: fops that outlast the drain timeout are ended by the stop", "[sim]") {
    ReplayedCluster cluster(
        5, {.nodes = 1, .drain_timeout = 10s, .clients = 1, .quiet_clients = true});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedNode& node = cluster.node(0);
    cluster.client(0).call(
        0, {.type = fop::find_fop_type("bulk_echo"), .bytes = 1000, .timeout = 1000s});
    const auto running = [&node] {
        std::uint64_t count = 0;
        for (const auto& each : node.node().localities()) count += each->work().count();
        return count;
    };
    while (running() == 0) cluster.world().step();
    cluster.network().partition({.from = "client-0", .to = "node-0"});
    const Instant asked_at = cluster.world().now();

    node.terminate();
    while (node.running() && cluster.run_for(100ms)) {
    }

    INFO(cluster.broken_promise());
    REQUIRE_FALSE(node.running());
    REQUIRE(cluster.world().now() - asked_at >= 10s);
    REQUIRE(cluster.world().now() - asked_at <= 14s);
    REQUIRE(node.manager().stopping_count() == 1);
    REQUIRE(node.events().count("daemon.not_stopped") == 0);
    REQUIRE(node.events().count("daemon.stopped") == 1);
}

TEST_CASE("sim node: a drain does not wait for a locality that does not turn", "[sim]") {
    Cluster cluster(11, {.nodes = 1, .localities = 3, .drain_timeout = 5s});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedNode& node = cluster.node(0);
    const Instant asked_at = cluster.world().now();
    cluster.world().stall(node.locality(0), after(asked_at, 60s));

    node.drain();
    cluster.run_for(1s);
    REQUIRE(node.node().localities()[1]->work().closed());
    REQUIRE(node.node().localities()[2]->work().closed());

    while (node.node().state() == NodeState::kDraining) cluster.run_for(100ms);
    REQUIRE(cluster.world().now() - asked_at <= 8s);
    REQUIRE(node.node().state() == NodeState::kDrained);
}

TEST_CASE("sim node: a stop reports a locality that hangs, and gives up on it", "[sim]") {
    Cluster cluster(12, {.nodes = 1, .localities = 3, .drain_timeout = 5s});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedNode& node = cluster.node(0);
    cluster.world().stall(node.locality(2), after(cluster.world().now(), 600s));

    node.terminate();
    cluster.run_for(12s);

    REQUIRE_FALSE(node.running());
    REQUIRE(node.events().count("daemon.not_stopped") == 1);
    REQUIRE(node.events().count("daemon.stopped") == 0);
}

TEST_CASE("sim node: two drains and a stop end together", "[sim]") {
    ReplayedCluster cluster(6, {.nodes = 1, .drain_timeout = 30s});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedNode& node = cluster.node(0);
    bool done = false;
    begin_work(node, 0, 7s, &done);

    node.drain();
    cluster.run_for(1s);
    node.drain();
    node.terminate();
    cluster.run_for(10s);

    REQUIRE_FALSE(node.running());
    REQUIRE(done);
    REQUIRE(node.events().count("daemon.drained") == 1);
}

TEST_CASE("sim node: a stop during the start ends well, whenever it comes", "[sim]") {
    for (std::uint64_t step = 0; step < 40; ++step) {
        CAPTURE(step);
        ReplayedCluster cluster(7 + step, {.nodes = 1, .localities = 4});
        cluster.start_all();
        for (std::uint64_t i = 0; i < step; ++i) cluster.world().step();

        cluster.node(0).terminate();
        cluster.run_for(1s);

        REQUIRE_FALSE(cluster.node(0).running());
        REQUIRE_FALSE(cluster.node(0).start_failed());
    }
}

TEST_CASE("sim node: kill -9 at any step leaves nothing behind and the next life starts", "[sim]") {
    for (std::uint64_t step = 0; step < 120; ++step) {
        CAPTURE(step);
        ReplayedCluster cluster(100 + step, {.nodes = 1, .localities = 3});
        cluster.start_all();
        bool done = false;
        for (std::uint64_t i = 0; i < step; ++i) {
            cluster.world().step(after(cluster.world().now(), 3s));
            if (i == 40) begin_work(cluster.node(0), 2, 100s, &done);
            if (i == 60) cluster.node(0).drain();
            if (i == 80) cluster.node(0).terminate();
            cluster.node(0).bury();
            if (!cluster.node(0).running()) break;
        }

        cluster.node(0).crash();
        cluster.node(0).start();
        cluster.run_for(2s);

        REQUIRE(cluster.node(0).node().state() == NodeState::kReady);
    }
}

TEST_CASE("sim node: a reload applies live keys, and names those that need a restart", "[sim]") {
    ReplayedCluster cluster(8, {.nodes = 1});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedNode& node = cluster.node(0);
    node.set_configuration(
        "node: { name: node-0, drain_timeout: 5s }\n"
        "localities: { cores: 3, buffers: 256KiB }\n"
        "fabric: { listen: [] }\n"
        "log: { level: debug }\n");

    const auto reloaded = reload(cluster, node);

    REQUIRE(reloaded.has_value());
    REQUIRE(daemon::keys_in_force(reloaded->changes) ==
            std::vector<std::string>{"node.drain_timeout", "log.level"});
    REQUIRE(reloaded->needs_restart == std::vector<std::string>{"localities.cores"});
    REQUIRE(node.manager().reloading_count() == 1);
    REQUIRE(node.manager().ready_count() == 2);
    REQUIRE(node.node().localities().size() == 2);
}

TEST_CASE("sim node: another request scheduler takes over while clients are served", "[sim]") {
    ReplayedCluster cluster(10, {.nodes = 1, .clients = 3, .client_pause_max = 50ms});
    cluster.start_all();
    REQUIRE(cluster.run_for(2s));
    SimulatedNode& node = cluster.node(0);
    const auto switches = [&node](std::size_t locality) {
        return node.node().localities()[locality]->requests()->policy_figures().switches.get();
    };
    const std::string common = node.good_configuration();

    struct Row {
        const char* words;
        bool adapts = false;  // The policy that is there goes on.
    };
    std::uint64_t expected = 0;
    for (const Row& row :
         {Row{"policy: fifo"}, Row{"policy: crr"}, Row{"policy: crr, crr: { quantum: 2 }", true},
          Row{"policy: orr"}, Row{"policy: trr"},
          Row{"policy: delay, delay: { min: 1ms, max: 30ms }"},
          Row{"policy: deadline, deadline: { policy: crr, wait_max: 5ms }"}, Row{"policy: mclock"},
          Row{"policy: epoch_groups"},
          Row{"policy: epoch_groups, epoch_groups: { length: 20ms, others: wait }", true},
          Row{"policy: epoch_groups, epoch_groups: { rules: [ \"a op=echo weight=2\" ] }"},
          Row{"policy: tbf"}, Row{"policy: tbf, tbf: { rules: [ \"a op=echo rate=9/s\" ] }", true},
          Row{"policy: crr"}}) {
        CAPTURE(row.words);
        node.set_configuration(common + "lrs: { " + row.words + " }\n");
        REQUIRE(reload(cluster, node).has_value());
        if (!row.adapts) ++expected;
        CHECK(switches(0) == expected);
        CHECK(switches(1) == expected);
        REQUIRE(cluster.run_for(2s));
    }

    // With nothing of the policies changed it stays.
    node.set_configuration(common + "lrs: { max_foms: 5 }\n");
    REQUIRE(reload(cluster, node).has_value());
    CHECK(switches(0) == expected);
    CHECK(node.node().localities()[0]->requests()->policy_figures().epoch.get() >= 1);
}

TEST_CASE("sim node: a bad configuration changes nothing and every error is logged", "[sim]") {
    ReplayedCluster cluster(9, {.nodes = 1});
    cluster.start_all();
    cluster.run_for(1s);
    SimulatedNode& node = cluster.node(0);
    node.set_configuration("node: { nmae: x }\nlog: { level: loud }\n");

    const auto reloaded = reload(cluster, node);

    REQUIRE_FALSE(reloaded.has_value());
    REQUIRE_FALSE(reloaded.error().busy);
    REQUIRE(reloaded.error().problems.size() == 2);
    REQUIRE(node.events().count("daemon.config_refused") == 2);
    REQUIRE(node.node().state() == NodeState::kReady);
}

TEST_CASE("sim node: reload during a drain is refused as busy", "[sim]") {
    ReplayedCluster cluster(10, {.nodes = 1});
    cluster.start_all();
    cluster.run_for(1s);
    cluster.node(0).drain();
    cluster.run_for(1s);

    const auto reloaded = reload(cluster, cluster.node(0));

    REQUIRE_FALSE(reloaded.has_value());
    REQUIRE(reloaded.error().busy);
}
