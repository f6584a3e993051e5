// Goal: what every policy keeps to, whatever its order and however it is set.
// Method: each row of the table in several settings, and on top of it each row that has another one
// inside, gets the same drawn requests, alone and in the scheduler; time moves to where the policy
// asks for it.

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/virtual_world.h"
#include "lrs/policies.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

// A policy as it is set.
struct SetPolicy {
    std::string name;
    PolicyChoice choice{};
    // Those of a client stay in their order.
    bool keeps_clients = false;
    // What no time lets go. Null: there is no such thing.
    bool (*is_held)(const Request& request) = nullptr;
    // Something may wait for longer than a flood lasts, as the rules say.
    bool is_slow = false;
};

// Of the clients 1 and 2.
bool is_of_first_two(const Request& request) {
    const auto client = static_cast<int>(request.attributes.client[0]);
    return client == 1 || client == 2;
}

using Rules = std::vector<std::string>;

SetPolicy with_tbf(std::string name, Rules rules) {
    SetPolicy made{.name = "tbf, " + std::move(name)};
    made.choice.tbf.rules = std::move(rules);
    return made;
}

SetPolicy with_mclock(std::string name, Rules rules) {
    SetPolicy made{.name = "mclock, " + std::move(name)};
    made.choice.mclock.rules = std::move(rules);
    return made;
}

SetPolicy with_groups(std::string name, Rules rules) {
    SetPolicy made{.name = "epoch_groups, " + std::move(name)};
    made.choice.epoch_groups.rules = std::move(rules);
    return made;
}

// A row is there as it is when nothing is said; these are the other ways.
std::vector<SetPolicy> other_settings(std::string_view policy) {
    std::vector<SetPolicy> all;
    const std::string first_two = "client={" + client_text(1) + " " + client_text(2) + "}";
    if (policy == "tbf") {
        all.push_back(with_tbf("a rate for each client", {"a * rate=1000/s burst=2 by=client"}));
        all.back().keeps_clients = true;
        all.push_back(with_tbf(
            "several classes for a client",
            {"small size<256k rate={2000/s 500MB/s} by=client",
             "object size>=768k rate=1GB/s burst=1MiB by=object", "default * rate=3000/s"}));
        all.push_back(with_tbf("two clients are blocked", {"stop " + first_two + " rate=0",
                                                           "default * rate=1000/s by=client"}));
        all.back().keeps_clients = true;
        all.back().is_held = &is_of_first_two;
        all.back().is_slow = true;
    } else if (policy == "mclock") {
        all.push_back(with_mclock("a limit for each client", {"a * limit=10000/s by=client"}));
        all.back().keeps_clients = true;
        all.push_back(with_mclock(
            "reservations, weights and limits",
            {"gold " + first_two + "&size<768k reservation=500/s weight=4 limit=20000/s",
             "small size<256k soft_limit=1000/s by=client", "default * weight=2 limit=30000/s"}));
        all.push_back(with_mclock("one a second", {"default * limit=1/s by=none"}));
        all.back().keeps_clients = true;
        all.back().is_slow = true;
    } else if (policy == "epoch_groups") {
        all.push_back(with_groups("a group for each client", {"a * by=client"}));
        all.back().keeps_clients = true;
        all.push_back(with_groups("weights, short turns, pauses",
                                  {"gold " + first_two + "&size<768k weight=4",
                                   "small size<256k by=client weight=2", "default * by=object"}));
        all.back().choice.epoch_groups.length = 1ms;
        all.back().choice.epoch_groups.at_end = AtEnd::kPause;
        all.back().choice.epoch_groups.others = OtherGroups::kWait;
    } else if (policy == "crr") {
        all.push_back({.name = "crr, eight in a row"});
        all.back().choice.crr.quantum = 8;
        all.back().keeps_clients = true;
    } else if (policy == "orr" || policy == "trr") {
        all.push_back({.name = std::string(policy) + ", both ways, three in a row"});
        all.back().choice.orr = {.quantum = 3, .ops = OrderedOps::kBoth};
        all.back().choice.trr = all.back().choice.orr;
    } else if (policy == "delay") {
        all.push_back({.name = "delay, every other one"});
        all.back().choice.delay = {.min = 1us, .max = 50ms, .percent = 50};
    }
    return all;
}

constexpr Duration kLongestWait = 50ms;

std::vector<SetPolicy> all_settings() {
    std::vector<SetPolicy> all;
    for (const PolicyEntry& entry : policies()) {
        if (entry.inner != nullptr) continue;
        const bool keeps = entry.client_order == PolicyEntry::ClientOrder::kKept;
        all.push_back({.name = std::string(entry.name), .keeps_clients = keeps});
        all.back().choice.policy = &entry;
        for (SetPolicy& other : other_settings(entry.name)) {
            other.choice.policy = &entry;
            all.push_back(std::move(other));
        }
    }
    // It lets go what the other one holds.
    const std::size_t count = all.size();
    for (const PolicyEntry& entry : policies()) {
        if (entry.inner == nullptr) continue;
        for (std::size_t i = 0; i < count; ++i) {
            SetPolicy outer = all[i];
            outer.name = std::string(entry.name) + " over " + outer.name;
            outer.choice.deadline = {.policy = outer.choice.policy, .wait_max = kLongestWait};
            outer.choice.policy = &entry;
            outer.is_held = nullptr;
            outer.is_slow = false;
            all.push_back(std::move(outer));
        }
    }
    return all;
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

// True where there are no classes.
bool in_order_of_each_class(const std::vector<std::uint64_t>& numbers, RequestMaker& requests,
                            const PolicyChoice& choice, const PolicyParts& parts) {
    if (choice.decides().class_of == nullptr) return true;
    std::map<std::string, std::uint64_t> last;
    for (const std::uint64_t number : numbers) {
        const auto [seen, is_new] =
            last.try_emplace(choice.class_of(requests[number].attributes, parts), number);
        if (!is_new && seen->second > number) return false;
        seen->second = number;
    }
    return true;
}

// The policies of a node, which have its rules and buckets.
class Makers {
public:
    explicit Makers(std::uint64_t seed) : seed_(seed), node_(seed) {}

    PolicyParts parts(const PolicyChoice& choice, Instant now) {
        return {.seed = seed_, .share = choice.share(node_, now)};
    }
    std::unique_ptr<Policy> make(const PolicyChoice& choice, Instant now) {
        return choice.make(parts(choice, now));
    }

private:
    const std::uint64_t seed_;
    PolicyNode node_;
};

// A policy without a scheduler.
class AlonePolicy {
public:
    AlonePolicy(const SetPolicy& set, RequestMaker& requests)
        : set_(set), requests_(requests), policy_(makers_.make(set.choice, {})) {}

    void push(NumberedRequest& request) {
        request.attributes.arrived_at = now_;
        policy_->push(request, now_);
        waiting_.insert(request.number);
    }
    void push_many(int count) {
        for (int i = 0; i < count; ++i) push(requests_.make());
    }
    void remove(NumberedRequest& request) {
        policy_->remove(request);
        waiting_.erase(request.number);
    }

    // All that is in, in the policy's order; then what no time lets go.
    // Checks that each has the class that the choice of the policy says.
    std::vector<std::uint64_t> pop_all() {
        std::vector<std::uint64_t> popped;
        for (;;) {
            const Policy::Next next = policy_->pop(now_);
            if (next.request != nullptr) {
                popped.push_back(static_cast<NumberedRequest*>(next.request)->number);
                waiting_.erase(popped.back());
                CHECK(policy_->class_of(*next.request).name ==
                      set_.choice.class_of(next.request->attributes,
                                           makers_.parts(set_.choice, now_)));
                policy_->complete(*next.request, now_);
            } else if (next.again != kNever) {
                REQUIRE(next.again > now_);
                now_ = next.again;
            } else {
                break;
            }
        }
        for (const std::uint64_t number : waiting_) {
            REQUIRE(set_.is_held != nullptr);
            REQUIRE(set_.is_held(requests_[number]));
            policy_->let_pass(requests_[number], now_);
            popped.push_back(number);
        }
        waiting_.clear();
        CHECK(policy_->pop(after(now_, 1h)).request == nullptr);
        return popped;
    }
    bool is_in_order(const std::vector<std::uint64_t>& numbers) {
        return in_order_of_each_class(numbers, requests_, set_.choice,
                                      makers_.parts(set_.choice, now_)) &&
               (!set_.keeps_clients || in_order_of_each_client(numbers, requests_));
    }

private:
    const SetPolicy& set_;
    RequestMaker& requests_;
    Makers makers_{1};
    Instant now_{};
    std::unique_ptr<Policy> policy_;
    std::set<std::uint64_t> waiting_;
};

class World : fopd::testing::Replay, public core::VirtualWorld {
public:
    explicit World(std::uint64_t seed) : Replay(seed), VirtualWorld(seed) {}

    // A reactor looks at the clock when it has a turn; it has one at the end.
    void run_with_turn(core::Reactor& reactor, Duration span) {
        core::Timer end([](core::Timer&) {});
        reactor.arm(end, after(now(), span));
        run_for(span);
    }
};

}  // namespace

TEST_CASE("lrs policies: each has a name and a summary, and can be made", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        CHECK_FALSE(entry.name.empty());
        CHECK(entry.summary.ends_with('.'));
        CHECK(entry.make(PolicySettings{}, {.seed = 1}) != nullptr);
        REQUIRE(entry.is_same != nullptr);
        CHECK(entry.is_same({}, {}));
    }
    CHECK(default_policy().name == "crr");
}

TEST_CASE("lrs policy: what is pushed is popped once, each client's and each class's in its order",
          "[lrs]") {
    for (const SetPolicy& set : all_settings()) {
        CAPTURE(set.name);
        RequestMaker requests(1);
        AlonePolicy policy(set, requests);
        policy.push_many(500);

        const auto popped = policy.pop_all();

        CHECK(each_once(popped, 500));
        CHECK(policy.is_in_order(popped));
    }
}

TEST_CASE("lrs policy: removed requests are not popped, and no other is lost", "[lrs]") {
    for (const SetPolicy& set : all_settings()) {
        CAPTURE(set.name);
        RequestMaker requests(2);
        AlonePolicy policy(set, requests);
        policy.push_many(100);
        std::set<std::uint64_t> left;
        for (std::uint64_t number = 0; number < 100; ++number) {
            if (number % 3 == 0) {
                policy.remove(requests[number]);
            } else {
                left.insert(number);
            }
        }

        const auto popped = policy.pop_all();

        CHECK(popped.size() == left.size());
        CHECK(std::set(popped.begin(), popped.end()) == left);
        CHECK(policy.is_in_order(popped));
    }
}

TEST_CASE("lrs policy: fifo's order is that of arrival", "[lrs]") {
    RequestMaker requests(3);
    SetPolicy fifo{.name = "fifo"};
    fifo.choice.policy = &*std::ranges::find(policies(), fifo.name, &PolicyEntry::name);
    AlonePolicy policy(fifo, requests);
    policy.push_many(50);

    CHECK(std::ranges::is_sorted(policy.pop_all()));
}

TEST_CASE("lrs policy: it keeps no delivered request", "[lrs]") {
    for (const SetPolicy& set : all_settings()) {
        CAPTURE(set.name);
        RequestMaker requests(4);
        auto policy = std::make_unique<AlonePolicy>(set, requests);
        policy->push_many(100);

        CHECK(policy->pop_all().size() == 100);
        for (std::uint64_t number = 0; number < 100; ++number) policy->push(requests[number]);
        CHECK(policy->pop_all().size() == 100);
        policy.reset();

        AlonePolicy other(set, requests);
        for (std::uint64_t number = 0; number < 100; ++number) other.push(requests[number]);
        CHECK(each_once(other.pop_all(), 100));
    }
}

TEST_CASE("lrs policy: others' floods keep nothing waiting for ever", "[lrs]") {
    enum class Flood { kSameObjectBefore, kNewObjects, kNewClients, kOtherOps };
    for (const SetPolicy& set : all_settings()) {
        if (set.is_slow) continue;
        for (const Flood flood :
             {Flood::kSameObjectBefore, Flood::kNewObjects, Flood::kNewClients, Flood::kOtherOps}) {
            CAPTURE(set.name, static_cast<int>(flood));
            World world(7);
            const auto reactor = world.make_reactor();
            Makers makers(7);
            Scheduler scheduler(*reactor, makers.make(set.choice, reactor->now()));
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
                world.run_with_turn(*reactor, 1ms);
            }

            CHECK_FALSE(victim.queued());
            scheduler.shutdown();
            getter.ask(requests.count());
        }
    }
}

TEST_CASE("lrs policy: one takes over from another while they work, and nothing is lost", "[lrs]") {
    const std::vector<SetPolicy> settings = all_settings();
    for (const bool ordered_only : {false, true}) {
        std::vector<const PolicyChoice*> choices;
        for (const SetPolicy& set : settings) {
            if (!ordered_only || set.keeps_clients) choices.push_back(&set.choice);
        }
        REQUIRE(choices.size() >= 2);
        for (std::uint64_t seed = 1; seed <= 80; ++seed) {
            CAPTURE(ordered_only, seed);
            World world(seed);
            const auto reactor = world.make_reactor();
            Makers makers(seed);
            const PolicyChoice* chosen = choices.front();
            Scheduler scheduler(*reactor, makers.make(*chosen, reactor->now()));
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
                        const PolicyChoice* const before = chosen;
                        chosen = choices[world.random().below(choices.size())];
                        const PolicyParts parts = makers.parts(*chosen, reactor->now());
                        if (chosen->is_kind_of(*before) && scheduler.adapt(*chosen, parts))
                            continue;
                        scheduler.use(chosen->make(parts));
                        ++switches;
                    }
                }
                if (world.random().below(2) == 0) world.run_with_turn(*reactor, 1ms);
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
    for (const SetPolicy& set : all_settings()) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(set.name, seed);
            World world(seed);
            const auto reactor = world.make_reactor();
            Makers makers(seed);
            Scheduler scheduler(*reactor, makers.make(set.choice, reactor->now()));
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
                world.run_with_turn(*reactor, 1ms);
            }
            // Half of them have time for all that time lets go.
            if (seed % 2 == 0) {
                getter.ask(requests.count());
                world.run_for(1h);
                for (std::uint64_t number = 0; number < requests.count(); ++number) {
                    if (!requests[number].queued()) continue;
                    REQUIRE(set.is_held != nullptr);
                    REQUIRE(set.is_held(requests[number]));
                }
            }
            scheduler.shutdown();
            if (getter.nothing_count() == 0) getter.ask(requests.count());
            world.run_for(1s);

            auto seen = getter.taken();
            std::vector<std::uint64_t> data;
            for (const std::uint64_t number : seen) {
                if (requests[number].attributes.lane == Lane::kData) data.push_back(number);
            }
            CHECK((!set.keeps_clients || in_order_of_each_client(data, requests)));
            CHECK(in_order_of_each_class(data, requests, set.choice,
                                         makers.parts(set.choice, reactor->now())));
            seen.insert(seen.end(), removed.begin(), removed.end());
            CHECK(each_once(seen, requests.count()));
            CHECK(getter.nothing_count() == 1);
        }
    }
}
