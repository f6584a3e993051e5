// Goal: other rules act on what waits already, at once, and lose nothing and no order.

#include <algorithm>
#include <map>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/lrs/tbf/tbf_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr Instant kRulesStart{10s};

}  // namespace

TEST_CASE("lrs tbf rules: a deep backlog has the new rate from the change on", "[lrs]") {
    TbfStage stage({"a job=* rate=1/s burst=1"});
    for (int i = 0; i < 3000; ++i) stage.push("job=a", kRulesStart);
    CHECK(stage.pop_all(kRulesStart).size() == 1);
    CHECK(stage.pop_all(kRulesStart + 100ms).empty());

    stage.change("a rate=1000/s burst=1", kRulesStart + 100ms);

    std::size_t served = 0;
    for (int ms = 100; ms <= 1100; ++ms) served += stage.pop_all(kRulesStart + ms * 1ms).size();
    CHECK(served >= 1000);
    CHECK(served <= 1001);

    stage.change("a rate=block", kRulesStart + 1101ms);
    CHECK(stage.pop_all(kRulesStart + 1h).empty());
    CHECK(stage.again == kNever);
    stage.change("a rate=unlimited", kRulesStart + 1h);
    CHECK(stage.pop_all(kRulesStart + 1h).size() == 3000 - 1 - served);
}

TEST_CASE("lrs tbf rules: a slower rate leaves no burst of the faster one behind", "[lrs]") {
    TbfStage stage({"a job=* rate=1000000/s"});
    for (int i = 0; i < 30'000; ++i) stage.push("job=a", kRulesStart);
    CHECK(stage.pop_all(kRulesStart).size() == 10'000);
    stage.change("a rate=10/s burst=1", kRulesStart + 1ms);
    CHECK(stage.pop_all(kRulesStart + 1ms).size() == 1);
    CHECK(stage.pop_all(kRulesStart + 100ms).empty());
    CHECK(stage.pop_all(kRulesStart + 101ms).size() == 1);
}

TEST_CASE("lrs tbf rules: a new rule takes over queued requests that match it", "[lrs]") {
    TbfStage stage({"every * rate=block"});
    stage.push("job=a op=read", kRulesStart);
    stage.push("job=b op=read", kRulesStart);
    stage.push("job=a op=write", kRulesStart);
    CHECK(stage.pop_all(kRulesStart).empty());
    stage.add("first job=a rate=unlimited rank=1", kRulesStart);
    CHECK(stage.pop_all(kRulesStart) == Numbers{0, 2});
    stage.del("every", kRulesStart);
    CHECK(stage.pop_all(kRulesStart) == Numbers{1});
}

TEST_CASE("lrs tbf rules: what a text matched before counts nothing among other rules", "[lrs]") {
    TbfStage stage({"held job=a*b rate=block", "free job=a*c rate=unlimited"});
    stage.push("job=axb", kRulesStart);
    CHECK(stage.pop_all(kRulesStart).empty());
    stage.del("held", kRulesStart);
    CHECK(stage.pop_all(kRulesStart) == Numbers{0});
    stage.add("held job=a*b rate=block rank=1", kRulesStart);
    stage.push("job=axb", kRulesStart);
    stage.push("job=axc", kRulesStart);
    CHECK(stage.pop_all(kRulesStart) == Numbers{2});
}

TEST_CASE("lrs tbf rules: a rule that is gone leaves nothing waiting", "[lrs]") {
    TbfStage stage({"a job=* rate=block"});
    for (int i = 0; i < 100; ++i) stage.push("job=j" + std::to_string(i % 10), kRulesStart);
    CHECK(stage.policy().class_count() == 10);
    stage.del("a", kRulesStart);
    const Numbers popped = stage.pop_all(kRulesStart);
    CHECK(popped.size() == 100);
    CHECK(std::ranges::is_sorted(popped));
    CHECK(stage.policy().class_count() == 1);
    CHECK(stage.buckets->count() == 0);
}

TEST_CASE("lrs tbf rules: a changed rank applies to queued requests", "[lrs]") {
    TbfStage stage({"reads op=read rate=block", "dd job=dd rate=unlimited"});
    stage.push("op=read job=dd", kRulesStart);
    stage.push("op=read job=cp", kRulesStart);
    CHECK(stage.pop_all(kRulesStart).empty());
    stage.change("dd rank=1", kRulesStart);
    CHECK(stage.pop_all(kRulesStart) == Numbers{0});
    stage.push("op=read job=dd", kRulesStart);
    stage.change("reads rank=0", kRulesStart);
    CHECK(stage.pop_all(kRulesStart).empty());
}

TEST_CASE("lrs tbf rules: classes that come together are served in the order of arrival", "[lrs]") {
    TbfStage stage({"a job=* rate=block", "b user=* rate=block rank=2000", "c pool=* rate=block"});
    core::Random random(5);
    for (int i = 0; i < 500; ++i) {
        stage.push(
            "job=j" + std::to_string(random.below(5)) + " user=u" + std::to_string(random.below(3)),
            kRulesStart);
    }
    stage.change("b rate=unlimited by=none rank=0", kRulesStart);
    const Numbers popped = stage.pop_all(kRulesStart);
    CHECK(popped.size() == 500);
    CHECK(std::ranges::is_sorted(popped));
}

TEST_CASE("lrs tbf rules: new ones stand behind those that were moved", "[lrs]") {
    TbfStage stage({"a job=a rate=block", "b user=u rate=block by=none"});
    stage.push("job=a user=u", kRulesStart);  // 0: a.
    stage.push("user=u", kRulesStart);        // 1: b.
    stage.push("job=a user=u", kRulesStart);  // 2: a.
    stage.push("user=u", kRulesStart);        // 3: b.
    stage.del("a", kRulesStart);
    stage.push("job=a user=u", kRulesStart);  // 4: b.
    stage.change("b rate=unlimited", kRulesStart);
    CHECK(stage.pop_all(kRulesStart) == Numbers{0, 1, 2, 3, 4});
}

TEST_CASE("lrs tbf rules: the same rules again change nothing for anybody", "[lrs]") {
    const std::vector<std::string> rules{"a job=* rate=10/s burst=5", "b user=* rate=10/s burst=5"};
    TbfStage stage(rules);
    for (int i = 0; i < 20; ++i) stage.push(i % 2 == 0 ? "job=a" : "user=u", kRulesStart);
    CHECK(stage.pop_all(kRulesStart).size() == 10);
    for (int i = 0; i < 10; ++i)
        stage.put_in_force(stage.book.load(rules, kRulesStart), kRulesStart);
    CHECK(stage.pop_all(kRulesStart).empty());
    CHECK(stage.pop_all(kRulesStart + 100ms).size() == 2);
}

TEST_CASE("lrs tbf rules: localities that hear of a change one after the other share the new limit",
          "[lrs]") {
    TbfStage stage({"a job=* rate=1000/s burst=10"}, {}, 2);
    for (std::size_t locality = 0; locality < 2; ++locality) {
        for (int i = 0; i < 100; ++i) stage.push("job=a", kRulesStart, locality);
    }
    CHECK(stage.pop_all(kRulesStart, 0).size() == 10);
    const auto edited = stage.book.change("a rate=10/s burst=10", {.now = kRulesStart});
    REQUIRE(edited.has_value());
    stage.set_rules(*edited, kRulesStart + 1ms, 0);
    CHECK(stage.pop_all(kRulesStart + 1ms, 0).size() <= 1);
    stage.set_rules(*edited, kRulesStart + 2ms, 1);
    CHECK(stage.pop_all(kRulesStart + 2ms, 1).empty());
    std::size_t served = 0;
    for (int i = 1; i <= 100; ++i) {
        served += stage.pop_all(kRulesStart + 2ms + i * 10ms, 0).size();
        served += stage.pop_all(kRulesStart + 2ms + i * 10ms, 1).size();
    }
    CHECK(served >= 9);
    CHECK(served <= 11);
}

TEST_CASE("lrs tbf rules: changes of rules while there is no room for classes lose nothing",
          "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        TbfStage stage({"a job=* rate=100/s"}, {.classes_max = 4}, 1, 4);
        std::map<std::uint64_t, int> seen;
        Instant now = kRulesStart;
        const auto note = [&seen](const Numbers& numbers) {
            for (const std::uint64_t number : numbers) ++seen[number];
        };
        for (int step = 0; step < 400; ++step) {
            now += 1ms;
            const std::uint64_t what = random.below(20);
            if (what < 12) {
                stage.push("job=j" + std::to_string(random.below(12)) + " user=u" +
                               std::to_string(random.below(9)),
                           now);
            } else if (what < 18) {
                note(stage.pop_all(now));
            } else if (random.below(2) == 0) {
                stage.change("a rate=" + std::to_string(1 + random.below(1000)) + "/s", now);
            } else {
                stage.change(random.below(2) == 0 ? "a job=* by=user" : "a job=*", now);
            }
        }
        stage.change("a rate=unlimited", now);
        note(stage.pop_all(now));
        CHECK(seen.size() == stage.requests.size());
        CHECK(std::ranges::all_of(seen, [](const auto& each) { return each.second == 1; }));
    }
}

TEST_CASE("lrs tbf node: rules by hand are settings, and keep what the others had used", "[lrs]") {
    TbfNode node(1);
    const TbfSettings file{.rules = {"a   job=a rate=1/s"}};
    const RuleSetPtr before = node.revision(file, kRulesStart);
    PolicySettings settings;
    settings.tbf = file;
    const RuleEdit add{.text = "b job=b rate={2/s 1MB/s} by=none rank=7"};
    REQUIRE_FALSE(node.edit(settings, add, kRulesStart).has_value());
    CHECK(settings.tbf.rules ==
          std::vector<std::string>{"b job=b rate={2/s 1MB/s} by=none rank=7", "a job=a rate=1/s"});
    const RuleSetPtr after = node.revision(settings.tbf, kRulesStart);
    CHECK(after->version() == before->version() + 1);
    CHECK(after->find("a")->own_bucket == before->find("a")->own_bucket);
    // What is in the file again keeps it as well.
    CHECK(node.revision(file, kRulesStart)->find("a")->own_bucket == before->find("a")->own_bucket);
}

TEST_CASE("lrs tbf node: a change that is refused changes nothing", "[lrs]") {
    TbfNode node(1);
    const TbfSettings file{.rules = {"a job=a rate=1/s"}};
    const RuleSetPtr before = node.revision(file, kRulesStart);
    PolicySettings settings;
    settings.tbf = file;
    REQUIRE(node.edit(settings, {.text = "a job=b rate=1/s"}, kRulesStart).has_value());
    CHECK(settings.tbf == file);
    CHECK(node.revision(file, kRulesStart) == before);
}

TEST_CASE("lrs tbf: it adapts to other rules of its node, and keeps what classes had", "[lrs]") {
    TbfNode node(1);
    PolicySettings settings;
    settings.tbf = {.rules = {"a job=a rate=0", "b job=b rate=1/s burst=1"}};
    const auto policy = make_tbf(settings.tbf, node.share(settings.tbf, kRulesStart), 1);
    StageRequest held("job=a");
    StageRequest served("job=b");
    policy->push(held, kRulesStart);
    policy->push(served, kRulesStart);
    CHECK(policy->pop(kRulesStart).request == &served);
    CHECK(policy->pop(kRulesStart).request == nullptr);

    settings.tbf.rules[0] = "a job=a rate=unlimited";
    using Adapted = Policy::Adapted;
    CHECK(policy->adapt(settings, {.share = {.tbf = node.share(settings.tbf, kRulesStart)}},
                        kRulesStart) == Adapted::kAtOnce);
    CHECK(policy->pop(kRulesStart).request == &held);
    std::uint64_t count = 0;
    policy->visit_classes(kRulesStart,
                          [&](const ClassView& of) { count += of.tally.totals().served; });
    CHECK(count == 2);
    CHECK(policy->adapt(settings, {.share = {.tbf = TbfNode(2).share(settings.tbf, kRulesStart)}},
                        kRulesStart) == Adapted::kNot);
}
