// Goal: while rules and policies change below it, what is overdue goes first, nothing goes by rules
// that are gone, and nothing is lost.
// Method: drawn changes under a backlog; everything that is given out is looked at when it is given
// out. Time is virtual.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

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

// A way to set it, in which each client's requests stay in order.
struct DeadlineSet {
    std::string_view inner;
    std::vector<std::string> rules;
    int blocked = -1;  // This client has nothing but what is overdue.
};

const std::vector<DeadlineSet>& deadline_sets() {
    static const std::vector<DeadlineSet> all{
        {"tbf", {}},
        {"tbf", {"a * rate=unlimited by=client"}},
        {"tbf", {"a * rate=2000/s by=client"}},
        {"tbf",
         {"stop client=" + client_text(1) + " rate=block", "a * rate=unlimited by=client"},
         1},
        {"tbf", {"stop client=" + client_text(2) + " rate=block rank=1", "a * rate=unlimited"}, 2},
        {"mclock", {}},
        {"mclock", {"a * limit=20000/s by=client"}},
    };
    return all;
}

const PolicyEntry* policy_named(std::string_view name) {
    return &*std::ranges::find(policies(), name, &PolicyEntry::name);
}

struct DeadlineShell : fopd::testing::Replay {
    explicit DeadlineShell(std::uint64_t seed)
        : Replay(seed),
          world(seed),
          reactor(world.make_reactor()),
          node(seed),
          requests(seed),
          scheduler(*reactor, default_policy().make({}, {})),
          getter(scheduler) {
        world.run_for(1ms);
    }

    void set(const DeadlineSet& next, Duration next_wait_max) {
        PolicyChoice choice;
        choice.policy = policy_named("deadline");
        choice.deadline.policy = policy_named(next.inner);
        choice.deadline.wait_max = next_wait_max;
        (next.inner == "tbf" ? choice.tbf.rules : choice.mclock.rules) = next.rules;
        const PolicyParts parts{.seed = 1, .share = choice.share(node, reactor->now())};
        const bool may_adapt = choice.is_kind_of(chosen);
        chosen = choice;
        blocked = next.blocked;
        wait_max = next_wait_max;
        if (may_adapt && scheduler.adapt(choice, parts)) {
            ++adapted;
        } else {
            scheduler.use(choice.make(parts));
            is_all_of_policy = false;
        }
        look();
    }
    void bring(std::uint8_t client) {
        NumberedRequest& request = requests.make();
        request.attributes.client = client_of(client);
        waiting.insert(request.number);
        scheduler.incoming(request);
        look();
    }
    void remove(NumberedRequest& request) {
        scheduler.remove(request);
        waiting.erase(request.number);
    }
    void ask(std::uint64_t count) {
        getter.ask(count);
        look();
    }
    void pass(Duration span) {
        core::Timer end([](core::Timer&) {});
        reactor->arm(end, after(world.now(), span));
        while (end.armed()) {
            REQUIRE(world.step());
            look();
        }
    }

    bool is_overdue(std::uint64_t number) {
        return after(requests[number].arrived_at(), wait_max) <= reactor->now();
    }
    // At what was given out since the last time: the clock and the settings are the same.
    void look() {
        for (; looked_at < getter.taken().size(); ++looked_at) {
            const std::uint64_t number = getter.taken()[looked_at];
            REQUIRE_FALSE(waiting.empty());
            const std::uint64_t oldest = *waiting.begin();
            if (is_overdue(oldest)) {
                REQUIRE(number == oldest);
                ++overdue_count;
            } else {
                REQUIRE(static_cast<int>(requests[number].attributes.client[0]) != blocked);
            }
            REQUIRE(waiting.erase(number) == 1);
        }
        // A new policy has to be given them first.
        if (!scheduler.is_handing_over()) is_all_of_policy = true;
        if (is_all_of_policy && getter.linked() && !waiting.empty())
            REQUIRE_FALSE(is_overdue(*waiting.begin()));
    }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    PolicyNode node;
    RequestMaker requests;
    Scheduler scheduler;
    TakingGetter getter;
    PolicyChoice chosen;
    int blocked = -1;
    Duration wait_max{};
    std::set<std::uint64_t> waiting;  // The oldest first.
    std::size_t looked_at = 0;
    bool is_all_of_policy = true;
    std::uint64_t adapted = 0;
    std::uint64_t overdue_count = 0;
};

}  // namespace

TEST_CASE("lrs deadline: overdue requests go first, and old rules do not apply", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        CAPTURE(seed);
        DeadlineShell shell(seed);
        core::Random& random = shell.world.random();
        const auto set_any = [&] {
            const DeadlineSet& next = deadline_sets()[random.below(deadline_sets().size())];
            shell.set(next, random.below(2) == 0 ? 2ms : 5ms);
        };
        set_any();
        for (int step = 0; step < 200; ++step) {
            const std::uint64_t what = random.below(20);
            if (what < 6) {
                for (std::uint64_t count = random.below(300); count > 0; --count)
                    shell.bring(static_cast<std::uint8_t>(random.below(5)));
            } else if (what < 12) {
                shell.ask(random.below(200));
            } else if (what < 14 && shell.requests.count() > 0) {
                NumberedRequest& request = shell.requests[random.below(shell.requests.count())];
                if (request.queued()) shell.remove(request);
            } else if (what < 17) {
                set_any();
            } else {
                shell.pass(Duration(random.between(1, 2'000'000)));
            }
        }
        CHECK(shell.adapted > 0);
        CHECK(shell.overdue_count > 0);
        // Whatever holds it, it comes in time.
        shell.ask(shell.requests.count());
        shell.pass(10ms);
        CHECK(shell.waiting.empty());
        CHECK_FALSE(shell.scheduler.is_handing_over());
    }
}
