// Goal: daemons that share a peer key move from epoch to epoch together over the real wire; one
// that dies, hangs, leaves or is cut off stops the others for a bounded time only, and joins again.
// Method: whole nodes in virtual time, and a swarm of them with clients, under plans of faults. The
// laws of epochs are checked at each view, at each call of a node, and at each answer.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/byte_order.h"
#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"
#include "tests/sim/seeds.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::ReplayedCluster;
using fopd::sim::testing::run_swarm;

namespace {

using Seen = eh::peers::EpochStatus::Seen;

// The longest call, 2.7 s with the times of a cluster, and a margin.
constexpr Duration kCallMax = 4s;
// Until a member that has lost its membership has joined again.
constexpr Duration kBackOffMax = 30s + kCallMax;

eh::peers::EpochStatus status_of(Cluster& cluster, std::uint32_t node) {
    return cluster.node(node).node().localities().front()->epochs()->status();
}

eh::EpochNumber epoch_of(Cluster& cluster, std::uint32_t node) {
    return status_of(cluster, node).epoch;
}

std::string state_of(Cluster& cluster, std::uint32_t at, const std::string& name) {
    for (const Seen& each : status_of(cluster, at).members) {
        if (each.name != name) continue;
        if (each.state == Seen::State::kUnknown) return "unknown";
        return each.state == Seen::State::kLost ? "lost" : "member";
    }
    return "unknown";
}

struct Three : ReplayedCluster {
    explicit Three(std::uint64_t seed, ClusterOptions options = {})
        : ReplayedCluster(seed, {.nodes = 3,
                                 .wire = options.wire,
                                 .peers = true,
                                 .shared_views = options.shared_views,
                                 .store_faults = options.store_faults}) {
        start_all();
        const bool together = run_for(5s) && move_together(5s);
        INFO(broken_promise());
        REQUIRE(together);
    }
};

}  // namespace

TEST_CASE("sim epochs: three nodes begin the same epochs", "[sim]") {
    for (const Wire wire : {Wire::kMessages, Wire::kSealed, Wire::kEncrypted}) {
        Three cluster(1, {.wire = wire});
        CHECK(status_of(cluster, 0).root == "node-0");
        CHECK(status_of(cluster, 1).view == status_of(cluster, 2).view);
        CHECK(cluster.node(1).events().count("eh.joined") == 1);
        CHECK(cluster.node(1).events().count("eh.no_epochs") == 0);
        CHECK(cluster.epochs().newest() == cluster.epochs().newest("node-1"));
        CHECK(cluster.epochs().views().size() == status_of(cluster, 0).view);
        CHECK(cluster.epoch_calls().whole_results() > 10);
        CHECK(cluster.member_states().left_views() > 0);
        REQUIRE(cluster.stop_all(30s));
    }
}

TEST_CASE("sim epochs: a node that is killed is evicted, and joins again", "[sim]") {
    Three cluster(2);
    cluster.node(2).crash();
    REQUIRE(cluster.run_for(kCallMax));
    CHECK(state_of(cluster, 0, "node-2") == "lost");
    CHECK(cluster.node(0).events().count("eh.evicts") == 1);
    const eh::EpochNumber before = epoch_of(cluster, 1);
    REQUIRE(cluster.run_for(5s));
    CHECK(epoch_of(cluster, 1) > before + 5);

    cluster.node(2).start();
    REQUIRE(cluster.run_for(2s));
    CHECK(state_of(cluster, 0, "node-2") == "member");
    CHECK(epoch_of(cluster, 2) > before);
}

TEST_CASE("sim epochs: each member logs each view that it is in, once", "[sim]") {
    Three cluster(14);
    const auto logged = [&](std::uint32_t node) {
        return cluster.node(node).events().count("eh.view");
    };
    const std::uint64_t view = status_of(cluster, 0).view;
    const std::uint64_t at_root = logged(0);
    const std::uint64_t at_other = logged(1);
    CHECK(at_root == view);
    CHECK(at_other > 0);
    cluster.node(2).crash();
    REQUIRE(cluster.run_for(kCallMax));
    REQUIRE(state_of(cluster, 0, "node-2") == "lost");
    cluster.node(2).start();
    REQUIRE(cluster.run_for(3s));
    const std::uint64_t more = status_of(cluster, 0).view - view;
    CHECK(more >= 2);
    REQUIRE(status_of(cluster, 1).view == view + more);
    CHECK(logged(0) == at_root + more);
    CHECK(logged(1) == at_other + more);
}

TEST_CASE("sim epochs: while no node waits for an epoch only beats travel", "[sim]") {
    Three cluster(15);
    const Cluster::IdleMessages before = cluster.idle_messages();
    REQUIRE(cluster.run_for(20s));
    CHECK(cluster.idle_messages().beats > before.beats + 20);
    CHECK(cluster.idle_messages().others == before.others);
}

TEST_CASE("sim epochs: a newcomer that no root can let in yet is in soon after one can", "[sim]") {
    ReplayedCluster cluster(16, {.nodes = 4, .peers = true});
    for (std::uint32_t i = 0; i < 3; ++i) cluster.node(i).start();
    REQUIRE(cluster.run_for(5s));
    REQUIRE(state_of(cluster, 1, "node-2") == "member");
    for (std::uint32_t i = 0; i < 3; ++i) cluster.node(i).lose_power();
    // The root is there, and must not go on without one of the other two. It takes the requests of
    // a node that was never a member.
    cluster.node(0).start();
    cluster.node(3).start();
    REQUIRE(cluster.run_for(60s));
    CHECK(cluster.node(0).events().count("eh.awaits_members") > 0);
    CHECK(
        status_of(cluster, 3).last_error.ends_with("node-0 has not joined the epochs itself yet"));

    cluster.node(1).start();
    cluster.node(2).start();
    const bool together = cluster.move_together(kCallMax + 1s);
    INFO(cluster.broken_promise());
    REQUIRE(together);
    REQUIRE(cluster.stop_all(30s));
}

TEST_CASE("sim epochs: a node that is drained leaves at once", "[sim]") {
    Three cluster(3);
    const eh::EpochNumber before = epoch_of(cluster, 0);
    cluster.node(1).drain();
    REQUIRE(cluster.run_for(1s));
    CHECK(state_of(cluster, 0, "node-1") == "lost");
    CHECK(cluster.node(0).events().count("eh.evicts") == 0);
    CHECK(cluster.node(1).events().count("eh.left") == 1);
    CHECK(epoch_of(cluster, 0) > before);
    REQUIRE(cluster.stop_all(30s));
}

TEST_CASE("sim epochs: without the root there are none until it is back", "[sim]") {
    Three cluster(4);
    const eh::EpochNumber before = epoch_of(cluster, 1);
    cluster.node(0).crash();
    REQUIRE(cluster.run_for(20s));
    CHECK(epoch_of(cluster, 1) <= before + 1);
    CHECK(cluster.node(1).events().count("eh.no_epochs") == 1);

    cluster.node(0).start();
    const bool together = cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
    CHECK(epoch_of(cluster, 1) > before + 1);
    CHECK(cluster.node(1).events().count("eh.epochs_again") == 1);
}

TEST_CASE("sim epochs: all are killed, and numbers go on", "[sim]") {
    Three cluster(5);
    const eh::EpochNumber before = epoch_of(cluster, 1);
    for (std::uint32_t i = 0; i < 3; ++i) cluster.node(i).lose_power();
    for (std::uint32_t i = 0; i < 3; ++i) cluster.node(i).start();
    const bool together = cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
    CHECK(epoch_of(cluster, 1) > before);
}

TEST_CASE("sim epochs: a hanging locality is left out, its node is not", "[sim]") {
    Three cluster(6);
    cluster.world().stall(cluster.node(1).locality(1), after(cluster.world().now(), 5s));
    const eh::EpochNumber before = epoch_of(cluster, 1);
    REQUIRE(cluster.run_for(4s));
    CHECK(epoch_of(cluster, 1) > before);
    CHECK(state_of(cluster, 0, "node-1") == "member");
}

TEST_CASE("sim epochs: a node that is cut off hears errors only, and joins again", "[sim]") {
    Three cluster(7);
    const Fault cut{.kind = Fault::Kind::kPartition, .at = {}, .node = 0, .span = 20s, .peer = 2};
    REQUIRE(cluster.run_for(10s, {cut}));
    const eh::EpochNumber before = epoch_of(cluster, 0);
    CHECK(state_of(cluster, 0, "node-2") == "lost");
    CHECK(cluster.node(2).events().count("eh.no_epochs") == 1);
    CHECK(epoch_of(cluster, 2) < before);
    REQUIRE(cluster.run_for(11s));
    const bool together = cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
}

TEST_CASE("sim epochs: a full disk at the root delays members, and no epoch", "[sim]") {
    Three cluster(8);
    cluster.node(2).terminate();
    REQUIRE(cluster.run_for(2s));
    REQUIRE_FALSE(cluster.node(2).running());
    cluster.node(0).epoch_files().is_full = true;
    cluster.node(2).start();
    const eh::EpochNumber before = epoch_of(cluster, 1);
    REQUIRE(cluster.run_for(10s));
    CHECK(epoch_of(cluster, 1) > before + 10);
    CHECK(cluster.node(1).events().count("eh.no_epochs") == 0);
    CHECK(cluster.node(0).events().count("eh.view_not_written") > 1);

    cluster.node(0).epoch_files().is_full = false;
    const bool together = cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
}

TEST_CASE("sim epochs: with a shared store another node becomes root", "[sim]") {
    Three cluster(9, {.shared_views = true});
    const std::string first = status_of(cluster, 0).root;
    const auto root = static_cast<std::uint32_t>(first.back() - '0');
    const std::uint32_t other = root == 0 ? 1 : 0;
    const eh::EpochNumber before = epoch_of(cluster, other);
    cluster.node(root).crash();
    // Twice root_silent, and the timeout of the epoch that the root had to begin.
    REQUIRE(cluster.run_for(kCallMax));
    CHECK(status_of(cluster, other).root != first);
    CHECK(epoch_of(cluster, other) > before + 1);

    cluster.node(root).start();
    const bool together = cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
    REQUIRE(cluster.stop_all(30s));
}

TEST_CASE("sim epochs: while the shared store is away epochs go on", "[sim]") {
    Three cluster(10, {.shared_views = true});
    cluster.views().break_until(after(cluster.world().now(), 20s));
    const eh::EpochNumber before = epoch_of(cluster, 1);
    REQUIRE(cluster.run_for(20s));
    CHECK(epoch_of(cluster, 1) > before + 20);
    CHECK(cluster.node(1).events().count("eh.no_epochs") == 0);
    REQUIRE(cluster.stop_all(30s));
}

TEST_CASE("sim epochs: after a kill at any moment of a change all move together again", "[sim]") {
    const auto moment = static_cast<Fault::Moment>(GENERATE(range(0U, Fault::kMoments)));
    const bool is_done = GENERATE(false, true);
    const bool is_shared = GENERATE(false, true);
    CAPTURE(static_cast<int>(moment), is_done, is_shared);
    Three cluster(12, {.shared_views = is_shared});
    const std::string first = status_of(cluster, 0).root;
    const auto root = static_cast<std::uint32_t>(first.back() - '0');
    // The root is lost. Whoever has this moment first, while another becomes root or this one
    // returns, is lost, too.
    const Fault lost{.kind = Fault::Kind::kCrash, .at = {}, .node = root, .span = 6s};
    const Fault killed{.kind = Fault::Kind::kCrashAt,
                       .at = Instant{1ms},
                       .node = Fault::kAnyNode,
                       .span = 3s,
                       .moment = moment,
                       .is_done = is_done};
    const bool ran = cluster.run_for(15s, {lost, killed});
    CHECK(cluster.has_carried_out(Fault::Kind::kCrashAt));
    const bool together = ran && cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
    REQUIRE(cluster.stop_all(30s));
}

TEST_CASE("sim epochs: wall clocks that jump change nothing", "[sim]") {
    Three cluster(13);
    const auto incarnation_of = [&](std::uint32_t node) {
        return load_little<eh::Incarnation>(
            cluster.node(node).epoch_files().incarnation.back().data());
    };
    const Fault back{.kind = Fault::Kind::kClockJump, .at = {}, .node = 0, .span = Duration(-48h)};
    const Fault ahead{.kind = Fault::Kind::kClockJump, .at = {}, .node = 1, .span = Duration(48h)};
    const eh::EpochNumber before = epoch_of(cluster, 1);
    REQUIRE(cluster.run_for(5s, {back, ahead}));
    CHECK(epoch_of(cluster, 1) > before + 5);
    std::vector<eh::Incarnation> incarnations;
    for (std::uint32_t i = 0; i < 3; ++i) {
        CHECK(cluster.node(i).events().count("eh.no_epochs") == 0);
        incarnations.push_back(incarnation_of(i));
    }

    // Back again, while they are down.
    const eh::EpochNumber last = epoch_of(cluster, 1);
    for (std::uint32_t i = 0; i < 3; ++i) cluster.node(i).lose_power();
    cluster.node(1).jump_clock(Duration(-96h));
    for (std::uint32_t i = 0; i < 3; ++i) cluster.node(i).start();
    const bool together = cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
    CHECK(epoch_of(cluster, 1) > last);
    for (std::uint32_t i = 0; i < 3; ++i) CHECK(incarnation_of(i) > incarnations[i]);
}

TEST_CASE("sim epochs: a node whose disk hangs stops in time, and says why", "[sim]") {
    Three cluster(11);
    cluster.node(2).terminate();
    REQUIRE(cluster.run_for(2s));
    REQUIRE_FALSE(cluster.node(2).running());
    cluster.node(2).epoch_files().hangs = true;
    cluster.node(2).start();
    REQUIRE(cluster.run_for(2s));
    CHECK(state_of(cluster, 0, "node-2") == "lost");
    cluster.node(2).terminate();
    REQUIRE(cluster.run_for(5s));
    CHECK_FALSE(cluster.node(2).running());
    CHECK(cluster.node(2).events().count("eh.file_hangs") == 1);
    CHECK(cluster.node(2).events().count("daemon.not_stopped") == 0);

    cluster.node(2).epoch_files().hangs = false;
    cluster.node(2).start();
    const bool together = cluster.move_together(kBackOffMax);
    INFO(cluster.broken_promise());
    REQUIRE(together);
}

namespace {

std::uint64_t run_seed(std::uint64_t seed) {
    core::Random random(seed);
    const auto upto = [&random](std::uint64_t most) {
        return static_cast<std::uint32_t>(1 + random.below(most));
    };
    const auto faulty = [&random] {
        return static_cast<std::uint32_t>(random.below(4) == 0 ? random.below(200'000) : 0);
    };
    // With two, the second of four nodes has another one below it, whose epochs it relays. The draw
    // is apart from the others: the fanout changes nothing else of what a seed does.
    core::Random of_fanout(seed ^ 0xfa0U);
    constexpr std::array<std::uint32_t, 4> kFanouts{2, 2, 3, 16};
    const ClusterOptions options{
        .nodes = 1 + upto(3),
        .localities = upto(3),
        .disks = static_cast<std::uint32_t>(random.below(2)),
        .drain_timeout = Duration{random.between(0, Duration(10s).count())},
        .clients = upto(3),
        .lines = 1,
        .wire = draw_wire(seed),
        .peers = true,
        .shared_views = random.below(2) == 0,
        .fanout = kFanouts[of_fanout.below(kFanouts.size())],
        .store_faults = {.failed_ppm = faulty(), .lost_ppm = faulty(), .unknown_ppm = faulty()}};
    ReplayedCluster cluster(seed, options, ReplayedCluster::Seed::kOfSwarm);
    auto plan = draw_fault_plan(random.fork(), {.nodes = options.nodes,
                                                .localities = options.localities,
                                                .clients = options.clients,
                                                .length = 120s,
                                                .fault_count = upto(30),
                                                .peers = true});
    add_epoch_faults(plan, random.fork(),
                     {.nodes = options.nodes, .length = 120s, .fault_count = upto(10)});
    cluster.start_all();

    const bool kept = cluster.run_for(120s, plan) && cluster.recover(90s) &&
                      cluster.move_together(kBackOffMax) && cluster.visit_all(60s) &&
                      cluster.part_all(30s) && cluster.stop_all(120s);

    INFO(cluster.broken_promise());
    REQUIRE(kept);
    return cluster.world().trace_hash();
}

}  // namespace

TEST_CASE("sim epochs: after any faults all move together again", "[sim][swarm]") {
    run_swarm(5, &run_seed);
}
