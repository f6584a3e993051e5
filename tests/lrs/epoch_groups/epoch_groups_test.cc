// Goal: whose requests a locality serves in an epoch, before the next one and without epochs; when
// an epoch is over; what it contributes.
// Method: one policy, and epochs that the test begins.

#include "lrs/epoch_groups/epoch_groups.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lrs/policies.h"
#include "tests/catch.h"
#include "tests/lrs/epoch_groups/groups_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

using Jobs = std::vector<std::string>;
constexpr Instant kStart = kGroupsStart;

}  // namespace

TEST_CASE("lrs epoch groups: the group of the epoch goes first, in the order of arrival", "[lrs]") {
    GroupsStage stage;
    for (const char* job : {"a", "b", "a", "c", "b"}) stage.push("job=" + std::string(job), kStart);
    stage.start_turn_of("b", kStart);

    const std::vector<std::uint64_t> numbers = stage.pop_all(kStart);

    REQUIRE(numbers.size() == 5);
    CHECK(std::vector(numbers.begin(), numbers.begin() + 2) == std::vector<std::uint64_t>{1, 4});
    // One that comes is of the turn, too.
    stage.push("job=a", kStart);
    stage.push("job=b", kStart);
    CHECK(stage.job_of_next(kStart) == "b");
    CHECK(stage.job_of_next(kStart) == "a");
}

TEST_CASE("lrs epoch groups: others are served in the order of their turns, or wait", "[lrs]") {
    const Jobs order = jobs_by_turn({"a", "b", "c", "d"});
    for (const OtherGroups others : {OtherGroups::kServe, OtherGroups::kWait}) {
        GroupsStage stage({.others = others});
        for (const std::string& job : order) stage.push_many(2, "job=" + job, kStart);
        stage.start_turn_of(order[1], kStart);
        CHECK(stage.job_of_next(kStart) == order[1]);
        CHECK(stage.job_of_next(kStart) == order[1]);
        if (others == OtherGroups::kWait) {
            CHECK(stage.job_of_next(kStart) == "-");
            CHECK(stage.job_of_next(kStart + 1s) == "-");
            stage.push("job=" + order[1], kStart);
            CHECK(stage.job_of_next(kStart) == order[1]);
            stage.lose_epoch(kStart);
        }
        for (const std::size_t next : {2U, 3U, 0U}) {
            CHECK(stage.job_of_next(kStart) == order[next]);
            CHECK(stage.job_of_next(kStart) == order[next]);
        }
        CHECK(stage.job_of_next(kStart) == "-");
    }
}

TEST_CASE("lrs epoch groups: when its time is over a group goes on, or all pause", "[lrs]") {
    const Jobs order = jobs_by_turn({"a", "b"});
    for (const AtEnd at_end : {AtEnd::kGoOn, AtEnd::kPause}) {
        GroupsStage stage({.length = 50ms, .at_end = at_end});
        for (const std::string& job : order) stage.push_many(4, "job=" + job, kStart);
        stage.start_turn_of(order[0], kStart);
        CHECK(stage.policy().epoch_over_at() == kStart + 50ms);
        CHECK(stage.job_of_next(kStart + 49ms) == order[0]);
        CHECK(stage.job_of_next(kStart + 50ms) == (at_end == AtEnd::kGoOn ? order[0] : "-"));

        stage.start_turn_of(order[1], kStart + 60ms);
        CHECK(stage.job_of_next(kStart + 60ms) == order[1]);
    }
}

TEST_CASE("lrs epoch groups: an epoch is over when nothing of its group waits", "[lrs]") {
    const bool serves = GENERATE(true, false);
    // While others are served, many short turns do not make many epochs.
    const Duration least = serves ? 1ms : 0ms;
    GroupsStage stage(
        {.length = 100ms, .others = serves ? OtherGroups::kServe : OtherGroups::kWait});
    const auto over_after = [&] {
        return std::max(stage.policy().epoch_over_at(), kStart) - kStart;
    };
    // At once before the first one that it contributes to.
    CHECK(stage.policy().epoch_over_at() == Instant{});

    SECTION("here none of them waited") {
        stage.push("job=a", kStart);
        stage.start_turn_of("elsewhere", kStart);
        CHECK(over_after() == least);
    }
    SECTION("they have been served, or are gone") {
        stage.push("job=a", kStart);
        StageRequest& gone = stage.push("job=a", kStart);
        stage.start_own_epoch(kStart);
        CHECK(over_after() == 100ms);
        CHECK(stage.job_of_next(kStart) == "a");
        CHECK(over_after() == 100ms);
        stage.remove(gone);
        CHECK(over_after() == least);
    }
    SECTION("nobody waits anywhere: after some time, or when something waits") {
        stage.start_own_epoch(kStart);
        CHECK(over_after() == 100ms);
        stage.push("job=a", kStart);
        CHECK(over_after() == least);
        CHECK(stage.job_of_next(kStart) == "a");
        CHECK(over_after() == 100ms);
    }
    SECTION("it has none") {
        stage.push("job=a", kStart);
        stage.lose_epoch(kStart);
        CHECK(stage.policy().epoch_over_at() == kNever);
    }
}

TEST_CASE("lrs epoch groups: an idle epoch is short for all nodes, whatever the length is",
          "[lrs]") {
    GroupsStage stage({.length = 10s});
    stage.start_own_epoch(kStart);
    CHECK(stage.policy().epoch_over_at() == kStart + EpochGroups::kIdleLength);
}

TEST_CASE("lrs epoch groups: it contributes who waits, by the turns after the last one", "[lrs]") {
    const Jobs order = jobs_by_turn({"a", "b", "c"});
    GroupsStage stage;
    CHECK(stage.contribution(kStart) == EpochDemand{});
    for (const std::string& job : order) stage.push_many(3, "job=" + job, kStart);
    stage.start_own_epoch(kStart);
    CHECK(stage.job_of_next(kStart) == order[0]);

    const EpochDemand demand = stage.contribution(kStart);
    CHECK(demand.last == Tag{.at = 0, .group = group_id_of("default{job=" + order[0] + "}")});
    REQUIRE(demand.count == 3);
    CHECK(demand.groups[0].tag.group == group_id_of("default{job=" + order[1] + "}"));
    CHECK(demand.groups[0].requests == 3);
    CHECK(demand.groups[2].tag.at == kRoundLength);
    CHECK(demand.groups[2].requests == 2);

    // What was lost does not change the turn that all know.
    stage.lose_epoch(kStart);
    for (int i = 0; i < 5; ++i) stage.job_of_next(kStart);
    CHECK(stage.contribution(kStart).last == demand.last);
}

TEST_CASE("lrs epoch groups: one that knows no turn, or an old one, learns it", "[lrs]") {
    GroupsStage one;
    GroupsStage late;
    for (const char* job : {"a", "b", "c"}) one.push_many(20, "job=" + std::string(job), kStart);
    for (int epoch = 0; epoch < 5; ++epoch) one.start_own_epoch(kStart);
    for (const char* job : {"c", "d"}) late.push_many(20, "job=" + std::string(job), kStart);

    for (int epoch = 0; epoch < 6; ++epoch) {
        const EpochDemand both =
            EpochDemand::combine(late.contribution(kStart), one.contribution(kStart));
        // Its groups count from the second one on.
        const GroupId last = group_id_of("default{job=d}");
        CHECK(both.requests_of(last).has_value() == (epoch > 0));
        one.start_epoch(both, kStart);
        late.start_epoch(both, kStart);
        CHECK(one.contribution(kStart).last == late.contribution(kStart).last);
        CHECK(one.contribution(kStart).last == *both.next());
    }
}

TEST_CASE("lrs epoch groups: when nodes had other policies it goes on from the last turn",
          "[lrs]") {
    GroupsStage stage;
    stage.push_many(3, "job=a", kStart);
    stage.start_own_epoch(kStart);
    const EpochDemand before = stage.contribution(kStart);
    stage.policy().start_epoch(9, {.filled = 0, .bytes = std::vector<std::byte>(0)}, kStart);
    CHECK(stage.contribution(kStart) == before);
    CHECK(stage.policy().epoch_over_at() <= kStart + 1ms);
}

TEST_CASE("lrs epoch groups: alone, groups take turns of their weights and of the length",
          "[lrs]") {
    GroupsStage stage({.length = 10ms, .rules = {"heavy job=h weight=3"}});
    stage.push_many(1000, "job=h", kStart);
    stage.push_many(1000, "job=a", kStart);
    stage.push_many(1000, "job=b", kStart);
    std::map<std::string, int> served;
    Instant now = kStart;
    std::string last;
    int turn = 0;
    std::vector<int> turns;
    for (int i = 0; i < 1000; ++i, now += 1ms) {
        const std::string job = stage.job_of_next(now);
        ++served[job];
        if (job != last) turns.push_back(std::exchange(turn, 0));
        last = job;
        ++turn;
    }
    CHECK(served["h"] == 600);
    CHECK(served["a"] == 200);
    CHECK(served["b"] == 200);
    for (const int each : turns) CHECK(each % 10 == 0);
}

TEST_CASE("lrs epoch groups: the length and what waits change at once, rules with a new policy",
          "[lrs]") {
    GroupsStage stage({.length = 1s});
    stage.push_many(2, "job=a", kStart);
    stage.push_many(2, "job=b", kStart);
    stage.start_turn_of("a", kStart);
    PolicySettings settings;
    settings.epoch_groups.length = 20ms;
    settings.epoch_groups.at_end = AtEnd::kPause;
    PolicyParts parts;
    parts.share.epoch_groups = stage.share;

    CHECK(stage.policy().adapt(settings, parts, kStart) == Policy::Adapted::kAtOnce);
    CHECK(stage.policy().epoch_over_at() == kStart + 20ms);
    CHECK(stage.job_of_next(kStart + 20ms) == "-");

    settings.epoch_groups.rules = {"every * by=none"};
    parts.share.epoch_groups = stage.node.share(settings.epoch_groups);
    CHECK(stage.policy().adapt(settings, parts, kStart) == Policy::Adapted::kNot);
}

TEST_CASE("lrs epoch groups: groups of one id share their turns, and none is left out", "[lrs]") {
    const EpochGroups::Options options{.id_of = [](std::string_view) { return GroupId{4}; }};
    GroupsStage stage({.length = 10ms}, options);
    for (const char* job : {"a", "b", "c"}) stage.push_many(100, "job=" + std::string(job), kStart);
    CHECK(stage.contribution(kStart).count == 1);
    CHECK(stage.contribution(kStart).requests_of(4) == 300);
    // Alone.
    std::map<std::string, int> served;
    Instant now = kStart;
    for (int i = 0; i < 60; ++i, now += 1ms) ++served[stage.job_of_next(now)];
    CHECK(served == std::map<std::string, int>{{"a", 20}, {"b", 20}, {"c", 20}});
    // In epochs.
    stage.start_own_epoch(now);
    CHECK(stage.pop_all(now).size() == 240);
}

TEST_CASE("lrs epoch groups: tags begin again before they end", "[lrs]") {
    GroupsStage stage;
    for (const char* job : {"a", "b", "c"}) stage.push_many(10, "job=" + std::string(job), kStart);
    EpochDemand demand;
    demand.last = {.at = kLastTagAt + 1, .group = 5};
    std::vector<GroupDemand> groups{{.tag = {.at = kLastTagAt + 2, .group = 9}, .requests = 1}};
    demand.set_groups(groups);
    stage.start_epoch(demand, kStart);
    CHECK(stage.contribution(kStart).last == Tag{});
    CHECK(stage.contribution(kStart).groups[0].tag.at == 0);

    // Alone, too.
    GroupsStage alone;
    for (const char* job : {"a", "b", "c"}) alone.push_many(10, "job=" + std::string(job), kStart);
    groups = {{.tag = {.at = kLastTagAt, .group = 9}, .requests = 1}};
    demand.last = {.at = kLastTagAt - 1, .group = 5};
    demand.set_groups(groups);
    alone.start_epoch(demand, kStart);
    alone.lose_epoch(kStart);
    CHECK(alone.pop_all(kStart).size() == 30);
}

TEST_CASE("lrs epoch groups: when there is no room for a group it shares one, in order", "[lrs]") {
    GroupsStage stage({}, {.groups_max = 2, .forget_after = 1s});
    for (const char* job : {"a", "b", "c", "d", "a", "c"})
        stage.push("job=" + std::string(job), kStart);
    const auto figures = class_figures(stage.policy(), kStart);
    REQUIRE(figures.size() == 3);
    CHECK(figures[2].name == "default{others}");
    CHECK(figures[2].queued == 3);
    CHECK(stage.pop_all(kStart).size() == 6);
    stage.push("job=e", kStart + 2s);
    CHECK(class_figures(stage.policy(), kStart + 2s).size() <= 2);
}

TEST_CASE("lrs epoch groups: figures have turns, weights and what waits at all nodes", "[lrs]") {
    GroupsStage stage({.rules = {"a job=a weight=2"}});
    stage.push_many(3, "job=a size=10", kStart);
    stage.push_many(2, "job=b", kStart);
    EpochDemand demand = stage.contribution(kStart);
    demand.groups[0].requests += 40;
    demand.groups[1].requests += 40;
    stage.start_epoch(demand, kStart);
    const std::string first = stage.job_of_next(kStart);

    const auto figures = class_figures(stage.policy(), kStart);
    REQUIRE(figures.size() == 2);
    CHECK(figures[0].name == "a{job=a}");
    CHECK(figures[0].turns->weight == 2);
    CHECK(figures[0].turns->queued_in_all == 43);
    CHECK(figures[1].turns->queued_in_all == 42);
    const std::size_t whose = first == "a" ? 0 : 1;
    CHECK(figures[whose].turns->taken == 1);
    CHECK(figures[1 - whose].turns->taken == 0);
    CHECK(figures[whose].served == 1);
    stage.lose_epoch(kStart);
    CHECK_FALSE(class_figures(stage.policy(), kStart)[0].turns->queued_in_all.has_value());
}
