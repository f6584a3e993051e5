// Goal: what every policy keeps to, whatever its order.
// Method: each row of the table gets the same drawn requests, alone and in the scheduler; time
// moves to where the policy asks for it.

#include <algorithm>
#include <map>
#include <set>

#include "core/virtual_world.h"
#include "lrs/policies.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

// All that is in, in the policy's order.
std::vector<std::uint64_t> pop_all(Policy& policy, Instant now = {}) {
    std::vector<std::uint64_t> popped;
    for (;;) {
        const Policy::Next next = policy.pop(now);
        if (next.request != nullptr) {
            popped.push_back(static_cast<NumberedRequest*>(next.request)->number);
            policy.complete(*next.request, now);
        } else if (next.again != kNever) {
            REQUIRE(next.again > now);
            now = next.again;
        } else {
            return popped;
        }
    }
}

bool each_once(std::vector<std::uint64_t> numbers, std::size_t count) {
    std::ranges::sort(numbers);
    if (numbers.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i) {
        if (numbers[i] != i) return false;
    }
    return true;
}

bool in_order_of_each_client(const std::vector<std::uint64_t>& numbers, RequestMaker& requests) {
    std::map<ClientId, std::uint64_t> last;
    for (const std::uint64_t number : numbers) {
        const auto [seen, is_new] = last.try_emplace(requests[number].attributes.client, number);
        if (!is_new && seen->second > number) return false;
        seen->second = number;
    }
    return true;
}

std::unique_ptr<Policy> make(const PolicyEntry& entry, std::uint64_t seed = 1) {
    return entry.make(PolicySettings{}, {.seed = seed});
}

bool keeps_order(const PolicyEntry& entry) {
    return entry.client_order == PolicyEntry::ClientOrder::kKept;
}

class World : fopd::testing::Replay, public core::VirtualWorld {
public:
    explicit World(std::uint64_t seed) : Replay(seed), VirtualWorld(seed) {}
};

}  // namespace

TEST_CASE("lrs policies: each has a name and a summary, and can be made", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        CHECK_FALSE(entry.name.empty());
        CHECK(entry.summary.ends_with('.'));
        CHECK(make(entry) != nullptr);
        REQUIRE(entry.is_same != nullptr);
        CHECK(entry.is_same({}, {}));
    }
    CHECK(default_policy().name == "fifo");
}

TEST_CASE("lrs policy: what is pushed is popped once, each client's in its order", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        RequestMaker requests(1);
        const auto policy = make(entry);
        for (int i = 0; i < 500; ++i) policy->push(requests.make(), Instant{});

        const auto popped = pop_all(*policy);

        CHECK(each_once(popped, 500));
        CHECK((in_order_of_each_client(popped, requests) || !keeps_order(entry)));
    }
}

TEST_CASE("lrs policy: what is removed is not popped, and nothing else is lost", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        RequestMaker requests(2);
        const auto policy = make(entry);
        for (int i = 0; i < 100; ++i) policy->push(requests.make(), Instant{});
        std::set<std::uint64_t> left;
        for (std::uint64_t number = 0; number < 100; ++number) {
            if (number % 3 == 0) {
                policy->remove(requests[number]);
            } else {
                left.insert(number);
            }
        }

        const auto popped = pop_all(*policy);

        CHECK(popped.size() == left.size());
        CHECK(std::set(popped.begin(), popped.end()) == left);
    }
}

TEST_CASE("lrs policy: fifo's order is that of arrival", "[lrs]") {
    RequestMaker requests(3);
    const auto policy = make(default_policy());
    for (int i = 0; i < 50; ++i) policy->push(requests.make(), Instant{});

    CHECK(std::ranges::is_sorted(pop_all(*policy)));
}

TEST_CASE("lrs policy: it forgets what it has given out", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        RequestMaker requests(4);
        auto policy = make(entry);
        for (int i = 0; i < 100; ++i) policy->push(requests.make(), Instant{});

        CHECK(pop_all(*policy).size() == 100);
        for (std::uint64_t number = 0; number < 100; ++number)
            policy->push(requests[number], Instant{});
        CHECK(pop_all(*policy).size() == 100);
        policy.reset();

        const auto other = make(entry);
        for (std::uint64_t number = 0; number < 100; ++number)
            other->push(requests[number], Instant{});
        CHECK(each_once(pop_all(*other), 100));
    }
}

TEST_CASE("lrs policy: others' floods keep nothing waiting for ever", "[lrs]") {
    enum class Flood { kSameObjectBefore, kNewObjects, kNewClients, kOtherOps };
    for (const PolicyEntry& entry : policies()) {
        for (const Flood flood :
             {Flood::kSameObjectBefore, Flood::kNewObjects, Flood::kNewClients, Flood::kOtherOps}) {
            CAPTURE(entry.name, static_cast<int>(flood));
            World world(7);
            const auto reactor = world.make_reactor();
            Scheduler scheduler(*reactor, make(entry));
            RequestMaker requests(7);
            TakingGetter getter(scheduler);
            const auto bring = [&](std::uint64_t offset) -> NumberedRequest& {
                NumberedRequest& request = requests.make();
                request.attributes.client = client_of(1);
                request.attributes.direction = Direction::kRead;
                request.attributes.device = 1;
                request.attributes.object = {.high = std::uint64_t{1} << 48, .low = 1};
                request.attributes.offset = offset;
                return request;
            };
            for (int i = 0; i < 100; ++i) scheduler.incoming(bring(0));
            NumberedRequest& victim = bring(1U << 30);
            scheduler.incoming(victim);
            // As many come as go.
            for (int step = 0; step < 3000 && victim.queued(); ++step) {
                for (int i = 0; i < 2; ++i) {
                    NumberedRequest& request = bring(0);
                    if (flood == Flood::kNewObjects) request.attributes.object.low = request.number;
                    if (flood == Flood::kOtherOps) request.attributes.direction = Direction::kNone;
                    if (flood == Flood::kNewClients) {
                        request.attributes.client[8] = std::byte(request.number & 0xff);
                        request.attributes.client[9] = std::byte(request.number >> 8);
                    }
                    scheduler.incoming(request);
                }
                getter.ask(2);
                world.run_for(1ms);
            }

            CHECK_FALSE(victim.queued());
            scheduler.shutdown();
            getter.ask(requests.count());
        }
    }
}

TEST_CASE("lrs policy: one takes over from another while they work, and nothing is lost", "[lrs]") {
    for (const bool ordered_only : {false, true}) {
        std::vector<const PolicyEntry*> entries;
        for (const PolicyEntry& entry : policies()) {
            if (!ordered_only || keeps_order(entry)) entries.push_back(&entry);
        }
        REQUIRE(entries.size() >= 2);
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            CAPTURE(ordered_only, seed);
            World world(seed);
            const auto reactor = world.make_reactor();
            Scheduler scheduler(*reactor, make(*entries.front(), seed));
            RequestMaker requests(seed);
            TakingGetter getter(scheduler);
            std::set<std::uint64_t> removed;
            std::uint64_t switches = 0;
            std::vector<std::uint64_t> running;
            for (int step = 0; step < 600; ++step) {
                const std::uint64_t what = world.random().below(12);
                if (what < 6) {
                    scheduler.incoming(requests.make());
                } else if (what < 9) {
                    getter.ask(world.random().below(3));
                } else if (what < 10 && requests.count() > 0) {
                    NumberedRequest& request = requests[world.random().below(requests.count())];
                    if (!request.queued()) continue;
                    scheduler.remove(request);
                    removed.insert(request.number);
                } else if (what < 11) {
                    // One that was given out by a policy that is gone may be among them.
                    running = getter.taken();
                    if (running.empty()) continue;
                    NumberedRequest& request =
                        requests[running[world.random().below(running.size())]];
                    if (request.delivered()) scheduler.complete(request);
                } else {
                    // Several in a row, without a turn between them.
                    for (std::uint64_t more = 1 + world.random().below(3); more > 0; --more) {
                        const auto* const entry = entries[world.random().below(entries.size())];
                        scheduler.use(make(*entry, seed));
                        ++switches;
                    }
                }
                if (world.random().below(2) == 0) world.run_for(1ms);
            }
            CHECK(scheduler.policy_figures().switches.get() == switches);
            scheduler.shutdown();
            getter.ask(requests.count());
            world.run_for(1s);

            auto seen = getter.taken();
            CHECK((!ordered_only || in_order_of_each_client(seen, requests)));
            seen.insert(seen.end(), removed.begin(), removed.end());
            CHECK(each_once(seen, requests.count()));
        }
    }
}

TEST_CASE("lrs policy: pushes, pops, removals and the drain in any order lose nothing", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(entry.name, seed);
            World world(seed);
            const auto reactor = world.make_reactor();
            Scheduler scheduler(*reactor, make(entry, seed));
            RequestMaker requests(seed);
            TakingGetter getter(scheduler);
            std::set<std::uint64_t> removed;
            for (int step = 0; step < 400; ++step) {
                const std::uint64_t what = world.random().below(10);
                if (what < 6) {
                    const bool control = world.random().below(5) == 0;
                    scheduler.incoming(requests.make(control ? Lane::kControl : Lane::kData));
                } else if (what < 9) {
                    getter.ask(world.random().below(3));
                } else if (requests.count() > 0) {
                    NumberedRequest& request = requests[world.random().below(requests.count())];
                    if (!request.queued()) continue;
                    scheduler.remove(request);
                    removed.insert(request.number);
                }
                world.run_for(1ms);
            }
            scheduler.shutdown();
            getter.ask(requests.count());
            world.run_for(1s);

            auto seen = getter.taken();
            std::vector<std::uint64_t> data;
            for (const std::uint64_t number : seen) {
                if (requests[number].attributes.lane == Lane::kData) data.push_back(number);
            }
            CHECK((in_order_of_each_client(data, requests) || !keeps_order(entry)));
            seen.insert(seen.end(), removed.begin(), removed.end());
            CHECK(each_once(seen, requests.count()));
            CHECK(getter.nothing_count() == 1);
        }
    }
}
