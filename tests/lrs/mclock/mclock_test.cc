// Goal: classes of mclock come and go, are reported, and give everything out at a change.

#include "lrs/mclock/mclock.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "lrs/policies.h"
#include "lrs/scheduler.h"
#include "tests/catch.h"
#include "tests/lrs/mclock/mclock_stage.h"
#include "tests/lrs/requests.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

using Order = std::vector<std::uint64_t>;

// Settings under which nearly everything waits.
PolicySettings slow_mclock() {
    PolicySettings settings;
    settings.mclock.capacity = 100;
    settings.mclock.rules = {"read op=read reservation=1/s limit=2/s by=none",
                             "others * limit=1/s by=client"};
    return settings;
}

std::unique_ptr<Policy> make_named(std::string_view name, const PolicySettings& settings) {
    return std::ranges::find(policies(), name, &PolicyEntry::name)->make(settings, {.seed = 1});
}

class MclockWorld : public core::VirtualWorld {
public:
    MclockWorld() : VirtualWorld(1) {}
};

}  // namespace

TEST_CASE("lrs mclock: requests of a class stay in their order", "[lrs]") {
    MclockStage stage({"a job=a reservation=100/s weight=3 limit=200/s"});
    for (int i = 0; i < 50; ++i) stage.push("job=a size=" + std::to_string(i * 1000), kMclockStart);
    Order order;
    for (Instant now = kMclockStart; now < kMclockStart + 10s; now += 1ms) {
        for (const std::uint64_t number : stage.pop_all(now)) order.push_back(number);
    }
    CHECK(order.size() == 50);
    CHECK(std::ranges::is_sorted(order));
}

TEST_CASE("lrs mclock: it says when to ask again, exactly", "[lrs]") {
    MclockStage stage({"a job=a limit=100/s", "b job=b limit=10/s"});
    stage.push_many(3, "job=a", kMclockStart);
    stage.push_many(2, "job=b", kMclockStart);
    CHECK(stage.pop_all(kMclockStart).size() == 2);
    CHECK(stage.again == kMclockStart + 10ms);
    CHECK(stage.pop_all(kMclockStart + 10ms - 1ns).empty());
    CHECK(stage.pop_all(kMclockStart + 10ms) == Order{1});
    CHECK(stage.pop_all(kMclockStart + 20ms) == Order{2});
    CHECK(stage.again == kMclockStart + 100ms);
    CHECK(stage.pop_all(kMclockStart + 100ms) == Order{4});
    CHECK(stage.again == kNever);
}

TEST_CASE("lrs mclock: a removed request causes no later wake-up", "[lrs]") {
    MclockStage stage({"a job=a limit=1/s"});
    stage.push("job=a", kMclockStart);
    CHECK(stage.pop_all(kMclockStart).size() == 1);
    StageRequest& waiting = stage.push("job=a", kMclockStart);
    CHECK(stage.pop_all(kMclockStart).empty());
    stage.policy().remove(waiting);
    CHECK(stage.pop_all(kMclockStart).empty());
    CHECK(stage.again == kNever);
}

TEST_CASE("lrs mclock: classes are forgotten, their limits are not", "[lrs]") {
    MclockStage stage({"each client=* limit=1/s"}, 1, {.forget_after = 10ms});
    const std::string client(31, '0');
    Instant now = kMclockStart;
    for (const char* digit : {"1", "2", "3", "4"}) stage.push("client=" + client + digit, now);
    CHECK(stage.pop_all(now).size() == 4);
    CHECK(class_count(stage.policy(), now) == 4);
    now += 100ms;
    for (int i = 0; i < 4; ++i) stage.push("job=other", now);
    stage.pop_all(now);
    CHECK(class_count(stage.policy(), now) == 1);
    stage.push("client=" + client + "1", now);
    CHECK(stage.pop_all(now).empty());
    CHECK(stage.again == kMclockStart + 1s);
}

TEST_CASE("lrs mclock: when there is no room for a class it shares one, in order", "[lrs]") {
    MclockStage stage({"each job=* limit=1000/s"}, 1, {.classes_max = 4});
    for (int i = 0; i < 10; ++i) stage.push("job=j" + std::to_string(i), kMclockStart);
    CHECK(class_count(stage.policy(), kMclockStart) == 5);
    const auto figures = class_figures(stage.policy(), kMclockStart);
    const auto others = std::ranges::find(figures, "each{others}", &ClassFigures::name);
    REQUIRE(others != figures.end());
    CHECK(others->queued == 6);
    Order order;
    for (Instant now = kMclockStart; now <= kMclockStart + 10ms; now += 1ms) {
        for (const std::uint64_t number : stage.pop_all(now)) order.push_back(number);
    }
    CHECK(order.size() == 10);
    CHECK(std::ranges::is_sorted(order));
}

TEST_CASE("lrs mclock: a class that reserves something always has room", "[lrs]") {
    MclockStage stage({"gold user={ann bob} reservation=10/s", "each job=*"}, 1,
                      {.classes_max = 2});
    for (int i = 0; i < 5; ++i) stage.push("job=j" + std::to_string(i), kMclockStart);
    stage.push("user=ann", kMclockStart);
    stage.push("user=bob", kMclockStart);
    CHECK(stage.pop_all(kMclockStart).front() == 5);
    const auto figures = class_figures(stage.policy(), kMclockStart);
    CHECK(figures[0].name == "gold{user=ann}");
    CHECK(figures[1].name == "gold{user=bob}");
    CHECK(figures[1].as_reserved == 1);
}

TEST_CASE("lrs mclock: classes that come and go leave nothing behind", "[lrs]") {
    MclockStage stage({"each client=* limit=100/s"}, 1, {.classes_max = 100, .forget_after = 1ms});
    Instant now = kMclockStart;
    std::size_t served = 0;
    for (int i = 0; i < 5000; ++i, now += 100us) {
        const std::string number = std::to_string(i);
        stage.push("client=" + std::string(32 - number.size(), '0') + number, now);
        served += stage.pop_all(now).size();
    }
    CHECK(served == 5000);
    CHECK(class_count(stage.policy(), now) <= 100);
}

TEST_CASE("lrs mclock: the cost of a request does not grow with the classes", "[lrs]") {
    using Clock = std::chrono::steady_clock;
    // What is given out was all that its class had, and comes again.
    const auto time_of = [](int classes) {
        MclockStage stage({"each job=*"});
        for (int i = 0; i < classes; ++i) stage.push("job=j" + std::to_string(i), kMclockStart);
        auto best = Clock::duration::max();
        for (int round = 0; round < 5; ++round) {
            const auto start = Clock::now();
            for (int i = 0; i < 5000; ++i) {
                Request* const request = stage.policy().pop(kMclockStart).request;
                REQUIRE(request != nullptr);
                stage.policy().push(*request, kMclockStart);
            }
            best = std::min(best, Clock::now() - start);
        }
        REQUIRE(class_count(stage.policy(), kMclockStart) == static_cast<std::size_t>(classes));
        return best;
    };
    // A look at all of them each time takes 128 times as long.
    CHECK(time_of(8192) < 20 * time_of(64));
}

TEST_CASE("lrs mclock: shares are kept when their numbers come to an end", "[lrs]") {
    MclockStage stage({"a job=a weight=1", "b job=b weight=1"});
    const std::string huge = "1048576TiB";
    stage.push_many(3, "job=a size=" + huge, kMclockStart);
    stage.push_many(3, "job=b size=" + huge, kMclockStart);
    std::map<std::string_view, int> counts;
    // Each takes a thousandth of what there is.
    for (int i = 0; i < 10'000; ++i) {
        Request* const request = stage.policy().pop(kMclockStart).request;
        REQUIRE(request != nullptr);
        ++counts[request->attributes.job];
        stage.policy().push(*request, kMclockStart);
        REQUIRE(std::abs(counts["a"] - counts["b"]) <= 1);
    }
}

TEST_CASE("lrs mclock: figures have the totals of each class", "[lrs]") {
    MclockStage stage({"a job=p* limit=10/s", "b user=x soft_limit=10/s"});
    stage.push_many(3, "job=p", kMclockStart);
    stage.push_many(3, "user=x size=100", kMclockStart);
    CHECK(stage.pop_all(kMclockStart).size() == 4);
    CHECK(stage.pop_all(kMclockStart + 100ms).size() == 1);
    auto figures = class_figures(stage.policy(), kMclockStart + 150ms);
    REQUIRE(figures.size() == 2);
    CHECK(figures[0].name == "a{job=p}");
    CHECK(figures[0].queued == 1);
    CHECK(figures[0].served == 2);
    CHECK(figures[0].throttled == 150ms);
    CHECK(figures[0].oldest == 150ms);
    CHECK(figures[0].operations_per_second > 1);
    CHECK(figures[1].served == 3);
    CHECK(figures[1].bytes == 300);
    CHECK(figures[1].over_limit == 2);
}

TEST_CASE("lrs mclock: rules that stay as they were keep their limits over a reload", "[lrs]") {
    MclockNode node(1);
    MclockSettings settings{
        .rules = {"a job=a limit=100/s", "b job=b reservation=50/s limit=50/s"}};
    std::uint64_t served_a = 0;
    std::uint64_t served_b = 0;
    std::deque<StageRequest> requests;
    for (int reload = 0; reload < 100; ++reload) {
        settings.rules.resize(2);
        settings.rules.push_back("c job=c weight=" + std::to_string(reload + 1));
        Mclock policy(node.share(settings), {});
        const Instant start = kMclockStart + reload * 10ms;
        requests.clear();
        for (int i = 0; i < 20; ++i) {
            requests.emplace_back(i % 2 == 0 ? "job=a" : "job=b");
            policy.push(requests.back(), start);
        }
        for (Instant now = start; now < start + 10ms; now += 1ms) {
            while (const Request* const request = policy.pop(now).request) {
                (request->attributes.job == "a" ? served_a : served_b) += 1;
            }
        }
        for (StageRequest& request : requests) {
            if (request.PolicyPlace::linked()) policy.remove(request);
        }
    }
    CHECK(served_a == 100);
    CHECK(served_b == 50);
}

TEST_CASE("lrs mclock: other limits hold at once", "[lrs]") {
    MclockNode node(1);
    std::deque<StageRequest> requests;
    std::vector<std::size_t> served;
    for (const char* rule : {"a job=a limit=1/s", "a job=a limit=1000/s", "a job=a weight=2"}) {
        Mclock policy(node.share({.rules = {rule}}), {});
        std::size_t count = 0;
        for (int i = 0; i < 1000; ++i) policy.push(requests.emplace_back("job=a"), kMclockStart);
        for (Instant now = kMclockStart; now < kMclockStart + 500ms; now += 1ms) {
            while (policy.pop(now).request != nullptr) ++count;
        }
        for (StageRequest& request : requests) {
            if (request.PolicyPlace::linked()) policy.remove(request);
        }
        served.push_back(count);
    }
    CHECK(served == std::vector<std::size_t>{1, 500, 1000});
}

TEST_CASE("lrs mclock: a drain delivers throttled requests", "[lrs]") {
    MclockWorld world;
    const auto reactor = world.make_reactor();
    Scheduler scheduler(*reactor, make_named("mclock", slow_mclock()));
    RequestMaker requests(1);
    TakingGetter getter(scheduler);
    for (int i = 0; i < 200; ++i) scheduler.incoming(requests.make());
    getter.ask(1000);
    world.run_for(10ms);
    CHECK(getter.taken().size() < 20);
    scheduler.shutdown();
    CHECK(getter.taken().size() == 200);
    CHECK(getter.nothing_count() == 1);
}

TEST_CASE("lrs mclock: requests move to another policy and back", "[lrs]") {
    MclockWorld world;
    const auto reactor = world.make_reactor();
    Scheduler scheduler(*reactor, make_named("fifo", {}));
    RequestMaker requests(2);
    TakingGetter getter(scheduler);
    for (int i = 0; i < 200; ++i) scheduler.incoming(requests.make());
    scheduler.use(make_named("mclock", slow_mclock()));
    getter.ask(1000);
    world.run_for(10ms);
    const std::size_t held = 200 - getter.taken().size();
    CHECK(held > 180);
    scheduler.use(make_named("mclock", slow_mclock()));
    scheduler.use(make_named("crr", {}));
    world.run_for(1us);
    CHECK(getter.taken().size() == 200);
    auto taken = getter.taken();
    std::ranges::sort(taken);
    for (std::uint64_t number = 0; number < taken.size(); ++number) CHECK(taken[number] == number);
}
