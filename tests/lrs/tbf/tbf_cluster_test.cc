// Goal: the servers of a cluster together serve a class at its rate, whoever of them has the
// demand, and never more, whatever happens to epochs. Method: real schedulers and policies in the
// simulated world, in epochs that a hub begins for all of them at times of their own; each service
// is written down.

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/lrs/tbf/cluster_stage.h"
#include "tests/slowness.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr std::string_view kJob = "job=a";
constexpr int kRounds = fopd::testing::kSlowness == 1 ? 3 : 1;

std::vector<std::string> rate_rule(std::uint64_t rate) {
    return {"a job=a rate=" + std::to_string(rate) + "/s scope=cluster"};
}

// In each second, beginning at every tenth of one.
void check_rate(const ClusterStage& stage, double rate, Instant from, Instant to,
                std::string_view request = kJob) {
    for (Instant begin = from; begin + 1s <= to; begin += 100ms) {
        const auto sum = static_cast<double>(stage.served_between(request, begin, begin + 1s));
        CAPTURE(request, in_seconds(begin - Instant{100s}), sum);
        CHECK(sum >= 0.98 * rate);
        CHECK(sum <= 1.01 * rate);
    }
}

// Until three more epochs have begun, in which the demand of all was counted.
void settle(ClusterStage& stage) {
    const std::size_t begun = stage.hub->begun_at.size();
    const auto is_settled = [&] {
        const auto& all = stage.hub->begun_at;
        std::size_t count = 0;
        for (std::size_t i = begun; i < all.size(); ++i)
            count += i == 0 || all[i] - all[i - 1] > 50ms ? 1U : 0U;
        return count >= 3;
    };
    while (!is_settled()) stage.run_for(10ms);
}

const ClassFigures& class_at(const std::vector<ClassFigures>& all, std::string_view name) {
    const auto found = std::ranges::find(all, name, &ClassFigures::name);
    REQUIRE(found != all.end());
    REQUIRE(found->cluster.has_value());
    return *found;
}

double share_at(ClusterStage& stage, std::size_t server) {
    return class_at(stage.figures(server), "a{job=a}").cluster->share;
}

}  // namespace

TEST_CASE("lrs tbf cluster: servers share a rate by their demand, whatever its skew", "[lrs]") {
    constexpr std::uint64_t kRate = 20'000;
    for (const std::size_t servers : {2U, 3U, 8U, 32U}) {
        for (const std::uint32_t localities : {1U, 2U, 8U}) {
            if (servers * localities > 32) continue;
            CAPTURE(servers, localities);
            ClusterStage stage({.seed = servers,
                                .servers = servers,
                                .localities = localities,
                                .rules = rate_rule(kRate),
                                .epochs = {.ragged_max = 5ms}});
            stage.run_for(10s);
            for (int round = 0; round < kRounds; ++round) {
                CAPTURE(round);
                for (std::size_t i = 0; i < servers; ++i) {
                    const bool is_idle = stage.world.random().below(3) == 0 && i != 0;
                    const auto depth = stage.world.random().below(6);
                    stage.keep_waiting(i, kJob, is_idle ? 0 : std::size_t{1} << (2 * depth));
                }
                settle(stage);
                const Instant settled = stage.now();
                stage.run_for(3s);
                check_rate(stage, kRate, settled, stage.now());
            }
            CHECK(stage.most_at_once(kJob, kRate) <=
                  static_cast<long double>(kRate) / 100 + static_cast<long double>(servers));
        }
    }
}

TEST_CASE("lrs tbf cluster: drawn arrivals beyond the rate are served at the rate", "[lrs]") {
    for (const std::size_t servers : {2U, 8U}) {
        CAPTURE(servers);
        ClusterStage stage({.seed = 5, .servers = servers, .rules = rate_rule(10'000)});
        for (std::size_t i = 0; i < servers; ++i)
            stage.send(i, kJob, 12'000.0 / static_cast<double>(servers));
        stage.run_for(3s);
        settle(stage);
        const Instant settled = stage.now();
        stage.run_for(3s);
        check_rate(stage, 10'000, settled, stage.now());
        // All of them go to one server.
        for (std::size_t i = 1; i < servers; ++i) {
            stage.send(i, kJob, 0);
            stage.keep_waiting(i, kJob, 0);
        }
        stage.send(0, kJob, 12'000);
        settle(stage);
        const Instant again = stage.now();
        stage.run_for(3s);
        check_rate(stage, 10'000, again, stage.now());
    }
}

TEST_CASE("lrs tbf cluster: below the rate nothing waits, wherever it arrives", "[lrs]") {
    ClusterStage stage({.seed = 6, .servers = 4, .rules = rate_rule(10'000)});
    stage.run_for(5s);
    stage.send(0, kJob, 5000);
    stage.run_for(5s);
    const std::uint64_t before = stage.served_between(kJob, Instant{}, stage.now());
    // A server whose first requests come while others are busy has a part kept for it.
    stage.send(1, kJob, 100);
    stage.run_for(1s);
    const auto sum =
        static_cast<double>(stage.served_between(kJob, Instant{}, stage.now()) - before);
    CHECK(sum >= 0.95 * 5100);
    CHECK(sum <= 1.05 * 5100);
}

TEST_CASE("lrs tbf cluster: rates in bytes, both, and of all classes are shared", "[lrs]") {
    ClusterStage stage({.seed = 7,
                        .servers = 3,
                        .rules = {"a job=a rate={1000000/s 40MB/s} scope=cluster",
                                  "b job=b* rate=unlimited all=9000/s scope=cluster"},
                        .epochs = {.ragged_max = 3ms},
                        .counts_bytes = true});
    stage.keep_waiting(0, "job=a size=4096", 500);
    stage.keep_waiting(1, "job=a size=4096", 100);
    stage.keep_waiting(1, "job=b1 size=1", 300);
    stage.keep_waiting(2, "job=b2 size=1", 200);
    stage.run_for(3s);
    settle(stage);
    const Instant settled = stage.now();
    stage.run_for(3s);
    check_rate(stage, 40e6, settled, stage.now(), "job=a size=4096");
    for (Instant begin = settled; begin + 1s <= stage.now(); begin += 100ms) {
        const auto b1 =
            static_cast<double>(stage.served_between("job=b1 size=1", begin, begin + 1s));
        const auto b2 =
            static_cast<double>(stage.served_between("job=b2 size=1", begin, begin + 1s));
        CHECK(b1 + b2 >= 0.98 * 9000);
        CHECK(b1 + b2 <= 1.01 * 9000);
        CHECK(b1 >= b2);
    }
}

TEST_CASE("lrs tbf cluster: more classes than an epoch has room for take turns", "[lrs]") {
    constexpr int kClasses = 150;
    constexpr double kRate = 500;
    ClusterStage stage({.seed = 8,
                        .servers = 3,
                        .rules = {"a job=* rate=500/s scope=cluster"},
                        .epochs = {.ragged_max = 3ms}});
    stage.run_for(3s);
    std::vector<std::string> jobs;
    for (int i = 0; i < kClasses; ++i) jobs.push_back("job=" + std::to_string(i));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        stage.keep_waiting(i % 3, jobs[i], 20);
        if (i % 2 == 0) stage.keep_waiting((i + 1) % 3, jobs[i], 40);
    }
    stage.run_for(6s);
    const Instant settled = stage.now();
    stage.run_for(4s);
    for (const std::string& job : jobs) {
        CAPTURE(job);
        const auto sum = static_cast<double>(stage.served_between(job, settled, settled + 4s));
        CHECK(sum >= 0.98 * 4 * kRate);
        CHECK(sum <= 1.01 * 4 * kRate);
        CHECK(stage.most_at_once(job, kRate) <= kRate / 100 + 3);
    }
}

TEST_CASE("lrs tbf cluster: a server that is cut off keeps its part, and the others divide all",
          "[lrs]") {
    ClusterStage stage({.seed = 9,
                        .servers = 4,
                        .rules = rate_rule(10'000),
                        .epochs = {.timeout = 2s, .ragged_max = 5ms}});
    for (std::size_t i = 0; i < 4; ++i) stage.keep_waiting(i, kJob, i == 0 ? 1000 : 100);
    stage.run_for(5s);
    CHECK(share_at(stage, 0) > 0.6);
    const Instant cut = stage.now();
    stage.cut_off(0);
    // It knows that by itself, before the others take its share.
    stage.run_for(2s);
    CHECK(share_at(stage, 0) == Approx(0.25).margin(0.001));
    CHECK(class_at(stage.figures(0), "a{job=a}").cluster->is_cut_off);
    stage.run_for(3s);
    CHECK(share_at(stage, 1) + share_at(stage, 2) + share_at(stage, 3) == Approx(1).margin(0.02));
    for (Instant begin = cut; begin + 1s <= stage.now(); begin += 100ms)
        CHECK(stage.served_between(kJob, begin, begin + 1s) <= 12'625);
    check_rate(stage, 12'500, cut + 3500ms, stage.now());

    stage.heal(0);
    stage.run_for(3s);
    CHECK_FALSE(class_at(stage.figures(0), "a{job=a}").cluster->is_cut_off);
    const Instant back = stage.now();
    stage.run_for(3s);
    check_rate(stage, 10'000, back, stage.now());
}

TEST_CASE("lrs tbf cluster: what a cut-off server keeps can be set, and it serves new classes",
          "[lrs]") {
    ClusterStage stage({.seed = 10,
                        .servers = 2,
                        .rules = rate_rule(10'000),
                        .epochs = {.timeout = 1s},
                        .cut_off = 10});
    stage.keep_waiting(1, kJob, 100);
    stage.run_for(3s);
    stage.cut_off(0);
    stage.run_for(3s);
    // It had the least of a share when it was cut off.
    stage.keep_waiting(0, kJob, 100);
    const Instant begin = stage.now();
    stage.run_for(1s);
    const auto sum = static_cast<double>(stage.served_between(kJob, begin, begin + 1s));
    CHECK(sum > 10'000 + 0.9 * 10'000 * 0.1 / 8);
    CHECK(sum <= 11'100);
}

TEST_CASE("lrs tbf cluster: whatever happens, a span has no more than burst, rate and what is kept",
          "[lrs]") {
    constexpr std::uint64_t kSeeds = 36 / (fopd::testing::kSlowness * fopd::testing::kSlowness);
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        CAPTURE(seed);
        constexpr double kRate = 20'000;
        // Some have bursts that take longer than an epoch, and time to save them.
        const double burst = seed % 2 == 0 ? 200 : 4000;
        core::Random random(seed);
        const std::size_t servers = 2 + random.below(6);
        const auto localities = static_cast<std::uint32_t>(1 + random.below(3));
        ClusterStage stage(
            {.seed = seed,
             .servers = servers,
             .localities = localities,
             .rules = {"a job=a rate=20000/s scope=cluster burst=" +
                       std::to_string(static_cast<int>(burst))},
             .epochs = {.timeout = 1s, .ragged_max = Duration(random.below(60'000'000))}});
        stage.run_for(3s);
        // When a server could use what it keeps besides the whole rate of the others.
        struct Alone {
            Instant begin;
            Instant end;
        };
        std::vector<Alone> alone;
        std::size_t cut = servers;
        for (int step = 0; step < 60; ++step) {
            const std::size_t server = random.below(servers);
            switch (random.below(8)) {
                case 0:
                    if (cut != servers) break;
                    cut = server;
                    stage.cut_off(cut);
                    alone.push_back({stage.now(), kNever});
                    break;
                case 1:
                    if (cut == servers) break;
                    stage.heal(cut);
                    // It fails once more, and then takes part in an epoch.
                    stage.run_for(3s);
                    alone.back().end = stage.now();
                    cut = servers;
                    break;
                case 2:
                    if (cut != servers) break;
                    alone.push_back({stage.now(), stage.now() + 3s});
                    stage.restart(server);
                    stage.run_for(3s);
                    break;
                default: {
                    const bool is_idle = random.below(3) != 0;
                    stage.keep_waiting(server, kJob, is_idle ? 0 : 1 + random.below(300));
                }
            }
            stage.run_for(Duration(static_cast<Duration::rep>(random.below(400'000'000))));
        }
        const double kept = kRate / static_cast<double>(servers);
        const auto allowed_until = [&](Instant at) {
            double sum = kRate * in_seconds(at - Instant{});
            for (const Alone& each : alone) {
                const Instant end = std::min(at, each.end);
                if (end > each.begin) sum += kept * in_seconds(end - each.begin);
            }
            return sum;
        };
        double level = 0;
        double most = 0;
        double last = 0;
        for (const ServedOnce& each : stage.served[std::string(kJob)]) {
            const double allowed = allowed_until(each.at);
            level = std::max(0.0, level - (allowed - last)) + 1;
            last = allowed;
            most = std::max(most, level);
        }
        // The cut-off server has its part of the burst, too.
        CHECK(most <=
              burst * (1 + 1.0 / static_cast<double>(servers)) + static_cast<double>(servers) + 1);
    }
}

TEST_CASE("lrs tbf cluster: a client cannot give its job an id that the rule has", "[lrs]") {
    ClusterStage stage({.rules = {"jobs job=* rate=100/s all=1000/s scope=cluster"}});
    for (const std::string_view name : {"job=all", "job=user", "job=group", "job=pool"})
        stage.keep_waiting(0, name, 1000);
    stage.keep_waiting(0, kJob, 100);
    stage.run_for(5s);
    const Instant begin = stage.now();
    stage.run_for(5s);
    CHECK(stage.served_between(kJob, begin, stage.now()) >= 450);
}

TEST_CASE("lrs tbf cluster: a debt made with a small share does not outlast it", "[lrs]") {
    ClusterStage stage({.rules = {"a job=a rate=10/s scope=cluster"}});
    stage.keep_waiting(1, kJob, 200);
    stage.run_for(3s);
    // One request is served with a share of 1/201, and nothing more is wanted there.
    stage.keep_waiting(0, kJob, 1);
    stage.run_for(3s);
    stage.keep_waiting(0, kJob, 0);
    stage.run_for(2s);
    stage.keep_waiting(1, kJob, 0);
    stage.run_for(3s);
    const Instant begin = stage.now();
    stage.keep_waiting(0, kJob, 1);
    stage.run_for(2s);
    CHECK(stage.served_between(kJob, begin, stage.now()) >= 5);
}

TEST_CASE("lrs tbf cluster: a process that stood still uses no share that others have", "[lrs]") {
    ClusterStage stage(
        {.seed = 11, .servers = 3, .rules = rate_rule(10'000), .epochs = {.timeout = 1s}});
    stage.keep_waiting(0, kJob, 1000);
    stage.keep_waiting(1, kJob, 10);
    stage.run_for(3s);
    stage.stand_still(0, 5s);
    stage.run_for(4s);
    CHECK(share_at(stage, 1) > 0.9);
    const Instant awake = stage.now() + 1s;
    stage.run_for(2s);
    // A request is only served by what a cut-off server keeps, until it is back.
    CHECK(stage.served_between(kJob, awake, awake + 1s) <= 13'500 + 100);
    stage.run_for(2s);
    const Instant back = stage.now();
    stage.run_for(2s);
    check_rate(stage, 10'000, back, stage.now());
}

TEST_CASE("lrs tbf cluster: a rule that differs at a server is known at all of them", "[lrs]") {
    ClusterStage stage({.seed = 12, .servers = 2, .rules = rate_rule(10'000)});
    for (const std::size_t server : {0U, 1U}) stage.keep_waiting(server, kJob, 50);
    stage.run_for(4s);
    CHECK_FALSE(class_at(stage.figures(0), "a{job=a}").cluster->differs);
    stage.set_rules(1, rate_rule(4000));
    stage.run_for(1s);
    for (const std::size_t server : {0U, 1U})
        CHECK(class_at(stage.figures(server), "a{job=a}").cluster->differs);
    // Each has its part of its own rate.
    const Instant begin = stage.now();
    stage.run_for(1s);
    const auto sum = static_cast<double>(stage.served_between(kJob, begin, begin + 1s));
    CHECK(sum > 4000);
    CHECK(sum < 10'000);
    stage.set_rules(0, rate_rule(4000));
    settle(stage);
    const Instant same = stage.now();
    stage.run_for(2s);
    CHECK_FALSE(class_at(stage.figures(0), "a{job=a}").cluster->differs);
    check_rate(stage, 4000, same, stage.now());
}

TEST_CASE(
    "lrs tbf cluster: policies are changed server by server, and the limit holds for the rest",
    "[lrs]") {
    ClusterStage stage({.seed = 13,
                        .servers = 3,
                        .localities = 2,
                        .rules = rate_rule(10'000),
                        .epochs = {.timeout = 1s}});
    for (std::size_t i = 0; i < 3; ++i) stage.keep_waiting(i, kJob, 100);
    stage.run_for(3s);
    stage.keep_waiting(2, kJob, 0);
    stage.set_policy(2, "fifo");
    stage.run_for(3s);
    const Instant without = stage.now();
    stage.run_for(2s);
    check_rate(stage, 10'000, without, stage.now());
    stage.set_policy(2, "tbf");
    stage.keep_waiting(2, kJob, 100);
    stage.run_for(3s);
    const Instant with = stage.now();
    stage.run_for(2s);
    check_rate(stage, 10'000, with, stage.now());
    CHECK(share_at(stage, 2) == Approx(1.0 / 3).margin(0.05));
}

TEST_CASE("lrs tbf cluster: a server without limits of the cluster has no part in it", "[lrs]") {
    ClusterStage stage({.seed = 15, .servers = 3, .rules = rate_rule(10'000)});
    stage.keep_waiting(0, kJob, 1);
    stage.set_rules(2, {"a job=a rate=10000/s"});
    stage.run_for(3s);
    stage.keep_waiting(0, kJob, 0);
    stage.run_for(3s);
    // Nobody wants anything: each of the two has an equal part.
    CHECK(share_at(stage, 0) == Approx(0.5).margin(0.001));
    stage.keep_waiting(2, kJob, 100);
    stage.keep_waiting(0, kJob, 100);
    settle(stage);
    CHECK(share_at(stage, 0) > 0.95);
    // The third one does not hold up the others.
    const std::uint64_t begun = stage.hub->begun_count();
    stage.run_for(2s);
    CHECK(stage.hub->begun_count() - begun >= 19);

    // When nobody has such limits, epochs are as rare as with other policies.
    for (const std::size_t server : {0U, 1U}) stage.set_rules(server, {"a job=a rate=10000/s"});
    stage.run_for(5s);
    const std::uint64_t rare = stage.hub->begun_count();
    stage.run_for(10s);
    CHECK(stage.hub->begun_count() - rare == 4);
}

TEST_CASE("lrs tbf cluster: an idle server is not cut off, and its epochs are few", "[lrs]") {
    ClusterStage stage(
        {.seed = 16, .servers = 3, .rules = rate_rule(10'000), .epochs = {.ragged_max = 5ms}});
    stage.keep_waiting(0, kJob, 1);
    stage.run_for(3s);
    stage.keep_waiting(0, kJob, 0);
    stage.run_for(1s);
    const std::uint64_t begun = stage.hub->begun_count();
    for (int i = 0; i < 500; ++i) {
        stage.run_for(20ms);
        REQUIRE_FALSE(class_at(stage.figures(0), "a{job=a}").cluster->is_cut_off);
    }
    CHECK(stage.hub->begun_count() - begun <= 25);
}

TEST_CASE("lrs tbf cluster: servers with different keys divide each limit equally", "[lrs]") {
    ClusterStage stage({.seed = 14,
                        .servers = 2,
                        .rules = rate_rule(10'000),
                        .epochs = {.timeout = 1s},
                        .has_odd_key = true});
    stage.keep_waiting(0, kJob, 100);
    stage.run_for(3s);
    CHECK(share_at(stage, 0) == Approx(0.5).margin(0.001));
    CHECK(class_at(stage.figures(0), "a{job=a}").cluster->differs);
}
