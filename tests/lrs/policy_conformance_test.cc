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
        CHECK(entry.make() != nullptr);
    }
    CHECK(default_policy().name == "fifo");
}

TEST_CASE("lrs policy: what is pushed is popped once, each client's in its order", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        RequestMaker requests(1);
        const auto policy = entry.make();
        for (int i = 0; i < 500; ++i) policy->push(requests.make(), Instant{});

        const auto popped = pop_all(*policy);

        CHECK(each_once(popped, 500));
        CHECK(in_order_of_each_client(popped, requests));
    }
}

TEST_CASE("lrs policy: what is removed is not popped, and nothing else is lost", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        RequestMaker requests(2);
        const auto policy = entry.make();
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
    const auto policy = default_policy().make();
    for (int i = 0; i < 50; ++i) policy->push(requests.make(), Instant{});

    CHECK(std::ranges::is_sorted(pop_all(*policy)));
}

TEST_CASE("lrs policy: pushes, pops, removals and the drain in any order lose nothing", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(entry.name, seed);
            World world(seed);
            const auto reactor = world.make_reactor();
            Scheduler scheduler(*reactor, entry.make());
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
            CHECK(in_order_of_each_client(data, requests));
            seen.insert(seen.end(), removed.begin(), removed.end());
            CHECK(each_once(seen, requests.count()));
            CHECK(getter.nothing_count() == 1);
        }
    }
}
