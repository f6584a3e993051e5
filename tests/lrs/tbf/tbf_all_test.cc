// Goal: what all classes of a rule may have together holds beside what each may have, and they take
// turns for it.
// Method: requests by hand against a virtual clock, in one locality and in several.

#include <map>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/lrs/tbf/tbf_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr Instant kAllStart{1000s};

void push_jobs(TbfStage& stage, const std::vector<std::string>& jobs, int count,
               std::size_t locality = 0) {
    for (const std::string& job : jobs)
        stage.push_many(count, "job=" + job + " size=1k", kAllStart, locality);
}

}  // namespace

TEST_CASE("lrs tbf all: the classes of a rule have a rate together, and take turns", "[lrs]") {
    TbfStage stage({"a job=* all=10/s"});
    push_jobs(stage, {"x", "y", "z"}, 3);
    Numbers served = stage.pop_all(kAllStart);
    CHECK(served == Numbers{0});
    for (int i = 1; i <= 8; ++i) {
        CHECK(stage.pop_all(kAllStart + i * 100ms - 1us).empty());
        const Numbers next = stage.pop_all(kAllStart + i * 100ms);
        served.insert(served.end(), next.begin(), next.end());
    }
    CHECK(served == Numbers{0, 3, 6, 1, 4, 7, 2, 5, 8});
}

TEST_CASE("lrs tbf all: the limit of each class and of all classes both hold", "[lrs]") {
    TbfStage stage({"a job=* each=2/s all=3/s"});
    push_jobs(stage, {"x", "y"}, 100);
    std::size_t count = 0;
    for (int i = 0; i <= 1000; ++i) count += stage.pop_all(kAllStart + i * 10ms).size();
    CHECK(count >= 30);
    CHECK(count <= 31);
    // One that is alone has no more than each may have.
    TbfStage alone({"a job=* each=2/s all=3/s"});
    push_jobs(alone, {"x"}, 100);
    count = 0;
    for (int i = 0; i <= 1000; ++i) count += alone.pop_all(kAllStart + i * 10ms).size();
    CHECK(count == 21);
}

TEST_CASE("lrs tbf all: a class without tokens of its own holds back no other of the rule",
          "[lrs]") {
    for (const auto& [jobs, most] : std::map<std::size_t, std::size_t>{{2, 200}, {5, 250}}) {
        TbfStage stage({"a job=* each=10/s all=25/s"});
        std::vector<std::size_t> served(jobs);
        for (std::size_t job = 0; job < jobs; ++job) push_jobs(stage, {std::to_string(job)}, 200);
        for (int i = 0; i < 10'000; ++i) {
            for (const std::uint64_t number : stage.pop_all(kAllStart + i * 1ms))
                ++served[number / 200];
        }
        std::size_t sum = 0;
        for (const std::size_t each : served) {
            sum += each;
            CHECK(each >= most / jobs - 1);
            CHECK(each <= most / jobs + 1);
        }
        CHECK(sum >= most - 1);
        CHECK(sum <= most + 1);
    }
}

TEST_CASE("lrs tbf all: bytes are limited together, too", "[lrs]") {
    TbfStage stage({"a job=* rate=unlimited all=100kB/s"});
    push_jobs(stage, {"x", "y", "z"}, 200);
    std::size_t count = 0;
    for (int i = 0; i <= 1000; ++i) count += stage.pop_all(kAllStart + i * 1ms).size();
    CHECK(count >= 97);
    CHECK(count <= 100);
}

TEST_CASE("lrs tbf all: localities have the rate together", "[lrs]") {
    TbfStage stage({"a job=* all=100/s"}, {}, 2);
    push_jobs(stage, {"x", "y"}, 500, 0);
    push_jobs(stage, {"x", "z"}, 500, 1);
    std::size_t count = 0;
    for (int i = 0; i <= 1000; ++i) {
        count += stage.pop_all(kAllStart + i * 1ms, 0).size();
        count += stage.pop_all(kAllStart + i * 1ms, 1).size();
    }
    CHECK(count >= 98);
    CHECK(count <= 102);
}

TEST_CASE("lrs tbf all: a class behind the common limit is throttled and follows edits", "[lrs]") {
    TbfStage stage({"a job=* rate=unlimited all=1/s"});
    push_jobs(stage, {"x"}, 1);
    StageRequest& second = stage.push("job=y", kAllStart);
    stage.push("job=z", kAllStart);
    push_jobs(stage, {"x"}, 3);
    CHECK(stage.pop_all(kAllStart) == Numbers{0});
    CHECK(stage.policy().is_held_back(second, kAllStart));
    stage.remove(second);
    CHECK(stage.pop_all(kAllStart + 1s) == Numbers{2});
    stage.change("a all=10/s", kAllStart + 1s);
    CHECK(stage.pop_all(kAllStart + 1100ms) == Numbers{3});
    stage.change("a all=unlimited", kAllStart + 1200ms);
    CHECK(stage.pop_all(kAllStart + 1200ms) == Numbers{4, 5});
}

TEST_CASE("lrs tbf all: it is written and changed as other options", "[lrs]") {
    const auto rule = parse_rule("a job=* each=5/s burst=9 all={100/s 1MB/s}");
    REQUIRE(rule.has_value());
    CHECK(rule->text() == "a job=* rate=5/s burst=9 all={100/s 1MB/s}");
    CHECK(parse_rule(rule->text())->text() == rule->text());
    CHECK(parse_rule("a job=* all=100/s")->text() == "a job=* rate=unlimited all=100/s");
    CHECK(parse_change("a rate=7/s", *rule)->text() == "a job=* rate=7/s all={100/s 1MB/s}");
    CHECK(parse_change("a all=unlimited", *rule)->text() == "a job=* rate=5/s burst=9");
    for (const std::string_view wrong :
         {"a * all=block", "a * all=0", "a * each=1/s rate=1/s", "a * all=1/s all=2/s"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_rule(wrong).has_value());
    }
}
