// Goal: however much waits, other rules and other policies hold at once for all of it, take a
// bounded part of a turn, and change no order.
// Method: counts of what a policy is given in each turn; time is virtual.

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/virtual_world.h"
#include "lrs/policies.h"
#include "lrs/scheduler.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr std::size_t kPart = Scheduler::kHandedOverMax;

// In the order of arrival, and counts what it is given.
class Counted final : public Policy {
public:
    explicit Counted(std::uint64_t* pushed) : pushed_(pushed) {}

    void push(Request& request, Instant /*now*/) override {
        ++*pushed_;
        waiting_.push_back(request);
    }
    Next pop(Instant /*now*/) override {
        return {.request = static_cast<Request*>(waiting_.pop_front())};
    }
    void remove(Request& request) override { request.PolicyPlace::unlink(); }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
    std::uint64_t* const pushed_;
    core::IntrusiveList<PolicyPlace> waiting_;
};

// A scheduler with the policy tbf, whose rules change.
struct RuledShell : fopd::testing::Replay {
    explicit RuledShell(std::vector<std::string> rules, std::uint64_t seed = 9)
        : Replay(seed),
          world(seed),
          reactor(world.make_reactor()),
          node(seed),
          requests(seed),
          scheduler(*reactor, make_tbf({.rules = rules}, share(rules), seed)),
          getter(scheduler) {
        // Its first turn is over.
        world.run_for(1ms);
    }

    TbfShare share(const std::vector<std::string>& rules) {
        return node.share({.rules = rules}, reactor->now());
    }
    void set_rules(const std::vector<std::string>& rules) {
        PolicySettings settings;
        settings.tbf.rules = rules;
        REQUIRE(scheduler.adapt(settings, {.share = {.tbf = share(rules)}}));
    }
    NumberedRequest& bring(std::uint8_t client) {
        NumberedRequest& request = requests.make();
        request.attributes.client = client_of(client);
        scheduler.incoming(request);
        return request;
    }
    // Until all is handed over; how many turns that took.
    std::size_t turn_to_the_end() {
        std::size_t turns = 0;
        while (scheduler.is_handing_over()) {
            REQUIRE(world.step());
            ++turns;
        }
        return turns;
    }
    std::uint64_t queued_of(std::string_view name) {
        for (const ClassFigures& of : scheduler.class_figures()) {
            if (of.name == name) return of.queued;
        }
        return 0;
    }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    TbfNode node;
    RequestMaker requests;
    Scheduler scheduler;
    TakingGetter getter;
};

bool all_in_order(const std::vector<std::uint64_t>& numbers) {
    return std::ranges::is_sorted(numbers);
}

}  // namespace

TEST_CASE("lrs hand over: a turn hands over its part, and what comes meanwhile waits behind",
          "[lrs]") {
    std::uint64_t first = 0;
    std::uint64_t pushed = 0;
    fopd::testing::Replay replay(3);
    core::VirtualWorld world(3);
    const auto reactor = world.make_reactor();
    Scheduler scheduler(*reactor, std::make_unique<Counted>(&first));
    RequestMaker requests(3);
    TakingGetter getter(scheduler);
    world.run_for(1ms);
    for (std::size_t i = 0; i < 4 * kPart; ++i) scheduler.incoming(requests.make());

    scheduler.use(std::make_unique<Counted>(&pushed));
    CHECK(pushed == kPart);
    scheduler.incoming(requests.make());
    CHECK(pushed == kPart);
    scheduler.remove(requests[4 * kPart]);
    scheduler.remove(requests[2 * kPart]);
    scheduler.remove(requests[0]);
    scheduler.incoming(requests.make());
    getter.ask(2 * kPart);
    CHECK(getter.taken().size() == kPart - 1);

    for (std::size_t turn = 2; turn <= 4; ++turn) {
        REQUIRE(world.step());
        CHECK(pushed == turn * kPart);
    }
    CHECK_FALSE(scheduler.is_handing_over());
    CHECK(first == 4 * kPart);
    getter.ask(3 * kPart);
    CHECK(getter.taken().size() == 4 * kPart - 1);
    CHECK(all_in_order(getter.taken()));
}

TEST_CASE("lrs hand over: requests not moved yet obey the new rules", "[lrs]") {
    RuledShell shell({"a * rate=unlimited"});
    for (std::size_t i = 0; i < 5 * kPart; ++i) shell.bring(i % 2 == 0 ? 1 : 2);
    shell.set_rules({"stop client=" + client_text(1) + " rate=block", "a * rate=unlimited"});
    shell.getter.ask(10 * kPart);
    shell.turn_to_the_end();
    CHECK(shell.getter.taken().size() == 5 * kPart / 2);
    for (const std::uint64_t number : shell.getter.taken()) REQUIRE(number % 2 == 1);
    CHECK(shell.queued_of("stop{client=" + client_text(1) + "}") == 5 * kPart / 2);

    // All of it is free again; a second change comes before the first is through.
    shell.set_rules({"a * rate=unlimited by=none"});
    shell.set_rules({"stop * rate=block by=none"});
    const std::size_t served = shell.getter.taken().size();
    CHECK(served < 5 * kPart / 2 + 2 * kPart);
    shell.turn_to_the_end();
    CHECK(shell.getter.taken().size() == served);
    CHECK(shell.queued_of("stop") == 5 * kPart - served);
    shell.set_rules({"a * rate=unlimited by=none"});
    shell.turn_to_the_end();
    CHECK(shell.getter.taken().size() == 5 * kPart);
}

TEST_CASE("lrs hand over: a changed rate moves no request", "[lrs]") {
    RuledShell shell({"a * rate=block"});
    for (std::size_t i = 0; i < 3 * kPart; ++i) shell.bring(1);
    shell.set_rules({"a * rate=unlimited"});
    CHECK_FALSE(shell.scheduler.is_handing_over());
    shell.getter.ask(3 * kPart);
    CHECK(shell.getter.taken().size() == 3 * kPart);
}

TEST_CASE("lrs hand over: queued requests are shown all the time", "[lrs]") {
    RuledShell shell({"a * rate=block by=client"});
    for (std::size_t i = 0; i < 4 * kPart; ++i) shell.bring(static_cast<std::uint8_t>(i % 2));
    const auto queued = [&shell] {
        std::uint64_t sum = 0;
        for (const ClassFigures& of : shell.scheduler.class_figures()) sum += of.queued;
        return sum;
    };
    shell.set_rules({"b * rate=block by=none"});
    CHECK(shell.queued_of("b") == kPart);
    CHECK(shell.queued_of("a{client=" + client_text(1) + "}") == 3 * kPart / 2);
    shell.bring(7);
    CHECK(shell.queued_of("other") == 1);
    CHECK(queued() == 4 * kPart + 1);
    const std::size_t turns = shell.turn_to_the_end();
    CHECK(turns == 4);
    CHECK(shell.queued_of("b") == 4 * kPart + 1);
    CHECK(queued() == 4 * kPart + 1);

    shell.scheduler.use(make_tbf({}, {}, 1));
    CHECK(shell.queued_of("default") == kPart);
    CHECK(shell.queued_of("other") == 3 * kPart + 1);
}

TEST_CASE("lrs hand over: a shutdown in the middle gives out all, in the order it came", "[lrs]") {
    RuledShell shell({"a * rate=block by=client"});
    for (std::size_t i = 0; i < 3 * kPart; ++i) shell.bring(static_cast<std::uint8_t>(i % 3));
    shell.set_rules({"b * rate=block by=none"});
    for (std::size_t i = 0; i < 10; ++i) shell.bring(5);
    shell.scheduler.use(make_mclock({}, {}, 1));
    shell.scheduler.shutdown();
    shell.getter.ask(4 * kPart);
    CHECK(shell.getter.taken().size() == 3 * kPart + 10);
    CHECK(all_in_order(shell.getter.taken()));
    CHECK(shell.getter.nothing_count() == 1);
}

TEST_CASE("lrs hand over: rules and policies that follow each other keep the order of each class",
          "[lrs]") {
    // With which each client is a class, and its requests stay in their order.
    const std::vector<std::vector<std::string>> rules{
        {},
        {"a * rate=unlimited by=client"},
        {"a * rate=unlimited by=client", "b client=" + client_text(2) + " rate=unlimited rank=1"},
        {"b client={" + client_text(2) + " " + client_text(3) + "} rate=2000/s rank=1"},
        {"a * rate=unlimited by=none"},
        {"c client=" + client_text(1) + " rate=unlimited", "a * rate=100000/s by=client"},
    };
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        RuledShell shell(rules[0], seed);
        core::Random& random = shell.world.random();
        std::set<std::uint64_t> removed;
        bool is_tbf = true;
        for (int step = 0; step < 200; ++step) {
            const std::uint64_t what = random.below(20);
            if (what < 6) {
                for (std::uint64_t count = random.below(300); count > 0; --count)
                    shell.bring(static_cast<std::uint8_t>(random.below(5)));
            } else if (what < 12) {
                shell.getter.ask(random.below(200));
            } else if (what < 14 && shell.requests.count() > 0) {
                NumberedRequest& request = shell.requests[random.below(shell.requests.count())];
                if (!request.queued()) continue;
                shell.scheduler.remove(request);
                removed.insert(request.number);
            } else if (what < 16 && is_tbf) {
                shell.set_rules(rules[random.below(rules.size())]);
            } else if (what == 16) {
                is_tbf = random.below(2) == 0;
                shell.scheduler.use(is_tbf ? make_tbf({}, shell.share({}), seed)
                                           : make_crr({.quantum = 8}, seed));
            } else {
                shell.world.step(after(shell.world.now(), 1ms));
            }
        }
        if (random.below(2) == 0) shell.scheduler.shutdown();
        shell.getter.ask(shell.requests.count());
        shell.world.run_for(100s);

        std::map<ClientId, std::uint64_t> last;
        std::set<std::uint64_t> seen = removed;
        for (const std::uint64_t number : shell.getter.taken()) {
            const ClientId client = shell.requests[number].attributes.client;
            const auto [before, is_new] = last.try_emplace(client, number);
            REQUIRE((is_new || before->second < number));
            before->second = number;
            REQUIRE(seen.insert(number).second);
        }
        CHECK(seen.size() == shell.requests.count());
    }
}
