// Goal: whoever looks on learns what each class waits for and gets, and everything just once.
// Method: policies with classes, with none, and on top of another; time is virtual.

#include "lrs/class_figures.h"

#include <algorithm>

#include "core/virtual_world.h"
#include "lrs/crr.h"
#include "lrs/deadline.h"
#include "lrs/fifo.h"
#include "lrs/mclock/mclock.h"
#include "lrs/policies.h"
#include "lrs/tbf/tbf.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

struct WatchedShell : fopd::testing::Replay {
    explicit WatchedShell(std::unique_ptr<Policy> policy)
        : Replay(8),
          world(8),
          reactor(world.make_reactor()),
          scheduler(*reactor, std::move(policy)),
          getter(scheduler) {}

    NumberedRequest& bring(std::uint8_t client, std::uint64_t size_bytes) {
        NumberedRequest& request = requests.make();
        request.attributes.client = client_of(client);
        request.attributes.size_bytes = size_bytes;
        scheduler.incoming(request);
        return request;
    }

    void advance(Duration span) {
        world.run_for(span);
        reactor->turn(world.now());
    }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    RequestMaker requests{8};
    Scheduler scheduler;
    TakingGetter getter;
};

std::unique_ptr<Policy> tbf_with(std::string rule) {
    return make_tbf({.rules = {std::move(rule)}}, {}, 1);
}

const ClassFigures& named(const std::vector<ClassFigures>& all, std::string_view name) {
    const auto found = std::ranges::find(all, name, &ClassFigures::name);
    REQUIRE(found != all.end());
    return *found;
}

}  // namespace

TEST_CASE("lrs classes: a policy without classes has one of all", "[lrs]") {
    WatchedShell shell(make_fifo());
    shell.bring(1, 100);
    shell.bring(2, 10);
    shell.bring(3, 1);
    shell.getter.ask(2);

    const auto classes = shell.scheduler.class_figures();
    REQUIRE(classes.size() == 1);
    CHECK(classes[0].name == "all");
    CHECK(classes[0].queued == 1);
    CHECK(classes[0].served == 2);
    CHECK(classes[0].bytes == 110);
    CHECK(classes[0].throttled == 0s);
}

TEST_CASE("lrs classes: those of crr are the clients, and stay known while idle", "[lrs]") {
    WatchedShell shell(make_crr({}, 1));
    for (int i = 0; i < 3; ++i) shell.bring(0xab, 10);
    shell.bring(2, 5);
    shell.getter.ask(3);
    shell.getter.ask(1);
    shell.bring(2, 5);

    const auto classes = shell.scheduler.class_figures();
    CHECK(classes.size() == 2);
    const ClassFigures& first = named(classes, "client=ab" + std::string(30, '0'));
    CHECK(first.queued == 0);
    CHECK(first.served == 3);
    CHECK(first.bytes == 30);
    const ClassFigures& second = named(classes, "client=02" + std::string(30, '0'));
    CHECK(second.queued == 1);
    CHECK(second.served == 1);
}

TEST_CASE("lrs classes: crr remembers no more idle clients than it has room for", "[lrs]") {
    core::VirtualWorld world(1);
    RequestMaker requests(1);
    const auto policy = make_crr({}, 1);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        NumberedRequest& request = requests.make();
        for (std::size_t byte = 0; byte < 8; ++byte)
            request.attributes.client[byte] = static_cast<std::byte>(i >> (8 * byte));
        policy->push(request, Instant{});
        REQUIRE(policy->pop(Instant{}).request == &request);
    }
    std::size_t count = 0;
    policy->visit_classes(Instant{}, [&](const ClassView&) { ++count; });
    CHECK(count == 4096);
}

TEST_CASE("lrs classes: requests passed by another policy count for their class", "[lrs]") {
    WatchedShell shell(make_deadline(tbf_with("held client=* rate=0"), 1s));
    shell.getter.ask(1);
    shell.bring(1, 7);
    CHECK(shell.getter.taken().empty());
    CHECK(shell.scheduler.class_figures()[0].is_throttled);
    shell.advance(1s);

    CHECK(shell.getter.taken().size() == 1);
    const auto classes = shell.scheduler.class_figures();
    REQUIRE(classes.size() == 1);
    CHECK(classes[0].name == "held{client=01" + std::string(30, '0') + "}");
    CHECK(classes[0].served == 1);
    CHECK(classes[0].bytes == 7);
    CHECK(classes[0].queued == 0);
    CHECK(classes[0].throttled == 1s);
    CHECK(!classes[0].is_throttled);
}

TEST_CASE("lrs classes: a chosen request is of the class that counts it", "[lrs]") {
    RequestMaker requests(1);
    std::vector<std::unique_ptr<Policy>> policies;
    policies.push_back(make_crr({}, 1));
    policies.push_back(tbf_with("held client=* rate=1000/s"));
    policies.push_back(make_mclock({.rules = {"held client=* limit=1000/s"}}, {}, 1));
    policies.push_back(make_deadline(tbf_with("held client=* rate=1000/s"), 1s));
    for (const auto& policy : policies) {
        NumberedRequest& request = requests.make();
        request.attributes.client = client_of(1);
        request.attributes.arrived_at = Instant{1s};
        policy->push(request, Instant{1s});
        REQUIRE(policy->pop(Instant{1s}).request == &request);
        const std::string name(policy->class_of(request).name);
        std::string counted;
        policy->visit_classes(Instant{1s}, [&](const ClassView& of) {
            if (of.tally.totals().served == 1) counted = of.name;
        });
        CHECK(!name.empty());
        CHECK(name == counted);
    }
    CHECK(make_fifo()->class_of(requests.make()).name == "all");
}

TEST_CASE("lrs classes: classes of mclock are shown below another policy", "[lrs]") {
    WatchedShell shell(
        make_deadline(make_mclock({.rules = {"held client=* limit=1/s"}}, {}, 1), 500ms));
    shell.getter.ask(2);
    shell.bring(1, 7);
    shell.bring(1, 7);
    CHECK(shell.getter.taken().size() == 1);
    auto classes = shell.scheduler.class_figures();
    REQUIRE(classes.size() == 1);
    CHECK(classes[0].name == "held{client=01" + std::string(30, '0') + "}");
    CHECK(classes[0].queued == 1);
    CHECK(classes[0].served == 1);
    CHECK(classes[0].is_throttled);
    shell.advance(500ms);

    CHECK(shell.getter.taken().size() == 2);
    classes = shell.scheduler.class_figures();
    CHECK(classes[0].queued == 0);
    CHECK(classes[0].served == 2);
    CHECK(classes[0].bytes == 14);
    CHECK(classes[0].throttled == 500ms);
    CHECK(!classes[0].is_throttled);
    const auto news = shell.scheduler.take_class_news();
    REQUIRE(news.size() == 1);
    CHECK(news[0].added.served == 2);
    CHECK(shell.scheduler.take_class_news().empty());
}

TEST_CASE("lrs classes: classes of mclock show their shares and how they were served", "[lrs]") {
    const std::string client = "01" + std::string(30, '0');
    WatchedShell shell(make_mclock(
        {.rules = {"some client=" + client + " reservation=10/s weight=3 soft_limit=20/s"}}, {},
        1));
    for (int i = 0; i < 5; ++i) shell.bring(1, 0);
    shell.getter.ask(5);
    shell.bring(2, 0);
    shell.getter.ask(1);
    const auto classes = shell.scheduler.class_figures();
    REQUIRE(classes.size() == 2);
    REQUIRE(classes[0].shares.has_value());
    const ClassShares& some = *classes[0].shares;
    CHECK(some.reservation == 10);
    CHECK(some.weight == 3);
    CHECK(some.limit == 20);
    CHECK(some.is_soft);
    CHECK(classes[0].as_reserved == 1);
    CHECK(classes[0].by_weight == 0);
    CHECK(classes[0].over_limit == 4);
    REQUIRE(classes[1].shares.has_value());
    CHECK_FALSE(classes[1].shares->limit.has_value());
    CHECK(classes[1].by_weight == 1);

    // Of all localities together; those for which there is no room are granted nothing.
    std::vector<ClassFigures> both = classes;
    both.insert(both.end(), classes.begin(), classes.end());
    const auto all = together(both, 1);
    REQUIRE(all.size() == 2);
    CHECK(all[0].over_limit == 8);
    CHECK(all[0].shares->limit == 20);
    CHECK(all[1].name == kOtherClasses);
    CHECK_FALSE(all[1].shares.has_value());
}

TEST_CASE("lrs classes: news are told once, and none is lost", "[lrs]") {
    WatchedShell shell(tbf_with("slow * rate=1/s burst=1 by=none"));
    ClassTotals heard;
    const auto listen = [&] {
        std::uint64_t queued = 0;
        for (const ClassNews& each : shell.scheduler.take_class_news()) {
            CHECK(each.name == "slow");
            heard.add(each.added);
            queued = each.now.queued;
        }
        return queued;
    };
    for (int i = 0; i < 3; ++i) shell.bring(1, 10);
    shell.getter.ask(3);
    CHECK(listen() == 2);
    CHECK(heard.served == 1);
    shell.advance(500ms);
    CHECK(listen() == 2);
    CHECK(heard.throttled == 500ms);
    shell.advance(600ms);
    CHECK(listen() == 1);
    CHECK(heard.served == 2);
    CHECK(heard.throttled == 1100ms);
    shell.advance(1s);
    CHECK(listen() == 0);
    CHECK(heard.served == 3);
    CHECK(heard.bytes == 30);
    CHECK(heard.throttled == 2s);
    CHECK(shell.scheduler.take_class_news().empty());
}

TEST_CASE("lrs classes: another policy begins to count anew", "[lrs]") {
    WatchedShell shell(tbf_with("held * rate=0 by=none"));
    shell.getter.ask(1);
    shell.bring(1, 10);
    shell.advance(2s);
    shell.scheduler.use(make_fifo());

    const auto news = shell.scheduler.take_class_news();
    REQUIRE(news.size() == 1);
    CHECK(news[0].name == "all");
    CHECK(news[0].added.served == 1);
    CHECK(news[0].added.throttled == 0s);
    CHECK(shell.scheduler.policy_figures().held_back_ns.get() == 2'000'000'000);
}

TEST_CASE("lrs classes: counting continues when a policy's settings change", "[lrs]") {
    WatchedShell shell(make_deadline(make_crr({.quantum = 8}, 1), 1h));
    for (int i = 0; i < 4; ++i) shell.bring(1, 10);
    for (int i = 0; i < 4; ++i) shell.bring(2, 10);
    shell.getter.ask(1);
    PolicySettings settings;
    settings.crr.quantum = 1;
    settings.deadline.wait_max = 1s;
    REQUIRE(shell.scheduler.adapt(settings, {}));
    CHECK(shell.scheduler.policy_figures().switches.get() == 0);

    // The turn that has begun ends as it was, the others have one each.
    shell.getter.ask(6);
    CHECK(shell.getter.taken() == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6});
    for (int i = 0; i < 2; ++i) shell.bring(1, 10);
    shell.getter.ask(2);
    CHECK(shell.getter.taken().back() == 8);
    const auto classes = shell.scheduler.class_figures();
    CHECK(named(classes, "client=01" + std::string(30, '0')).served == 5);

    // And what waits for a second now goes first.
    shell.bring(1, 10);
    shell.advance(1s);
    shell.bring(3, 10);
    shell.getter.ask(2);
    CHECK(shell.getter.taken().back() == 10);
}

TEST_CASE("lrs classes: those of all localities together, and no more than wanted", "[lrs]") {
    const auto made = [](std::string name, std::uint32_t position, std::uint64_t queued) {
        return ClassFigures{
            .name = std::move(name), .sort_position = position, .queued = queued, .served = 1};
    };
    const std::vector parts{made("b", 1, 1), made("z", 0, 2), made("b", 1, 3), made("a", 1, 0)};

    const auto all = together(parts, 10);
    REQUIRE(all.size() == 3);
    CHECK(all[0].name == "z");
    CHECK(all[1].name == "a");
    CHECK(all[2].name == "b");
    CHECK(all[2].queued == 4);
    CHECK(all[2].served == 2);

    const auto some = together(parts, 1);
    REQUIRE(some.size() == 2);
    CHECK(some[0].name == "b");
    CHECK(some[1].name == "other");
    CHECK(some[1].queued == 2);
    CHECK(some[1].served == 2);
}

TEST_CASE("lrs classes: those of crr are whoever it goes round by", "[lrs]") {
    for (const auto& [by, names] :
         {std::pair(Key::kJob, std::vector<std::string>{"job=", "job=dd.0"}),
          std::pair(Key::kUser, std::vector<std::string>{"user=ann", "user=bob"}),
          std::pair(Key::kPrincipal, std::vector<std::string>{"principal=p"})}) {
        const auto policy = make_crr({.by = by}, 1);
        RequestMaker requests{1};
        std::vector<NumberedRequest*> all;
        for (std::uint8_t i = 0; i < 8; ++i) {
            NumberedRequest& request = requests.make();
            request.attributes.client = client_of(i);
            request.attributes.principal = "p";
            request.attributes.share = "principal p";
            // The first six are one's, who would be served them in a row.
            request.attributes.job = i < 6 ? "dd.0" : "";
            request.attributes.user = i < 6 ? "ann" : "bob";
            policy->push(request, Instant{1s});
            all.push_back(&request);
        }
        std::vector<std::string> shown;
        policy->visit_classes(Instant{1s},
                              [&](const ClassView& of) { shown.emplace_back(of.name); });
        std::ranges::sort(shown);
        CHECK(shown == names);
        PolicySettings settings;
        settings.crr.by = by;
        CHECK(policy->adapt(settings, {}, Instant{1s}) == Policy::Adapted::kAtOnce);
        settings.crr.by = Key::kClient;
        CHECK(policy->adapt(settings, {}, Instant{1s}) == Policy::Adapted::kNot);
        CHECK(policy->pop(Instant{1s}).request == all[0]);
        CHECK(policy->pop(Instant{1s}).request == all[names.size() > 1 ? 6 : 1]);
        for (Request* const each : all) {
            if (each != all[0] && each != all[names.size() > 1 ? 6 : 1]) policy->remove(*each);
        }
    }
}
