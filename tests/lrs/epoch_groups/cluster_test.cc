// Goal: servers in step serve the same group at a time, whatever each has served before; shares
// follow weights, no group starves, and servers that missed epochs, came late or have another
// policy keep nobody back.
// Method: real schedulers of many servers in virtual time, over epochs whose contributions are
// combined in drawn trees; and over the fold of localities.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "eh/fold.h"
#include "eh/local.h"
#include "lrs/epoch_groups/group_demand.h"
#include "sim/schedulers/scheduled_servers.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

using Work = sim::ScheduledServers::Work;

PolicyChoice choice_of(std::string_view policy, const EpochGroupsSettings& settings = {}) {
    PolicyChoice choice;
    choice.policy = &*std::ranges::find(policies(), policy, &PolicyEntry::name);
    choice.epoch_groups = settings;
    return choice;
}

// Servers, what each has served in its order, and the turns of all epochs.
class InStep : fopd::testing::Replay {
public:
    explicit InStep(std::uint64_t seed, std::size_t count, const EpochGroupsSettings& settings = {},
                    sim::EpochBarrier::Options epochs = {})
        : Replay(seed),
          servers({.servers = count,
                   .policy = choice_of("epoch_groups", settings),
                   .epochs = epochs,
                   .timeout = 2s,
                   .seed = seed}),
          served(count) {
        servers.on_done([this](const Work& work) {
            served[work.server].push_back(work.job);
            if (refills) servers.submit(work);
        });
    }

    // Each server serves other jobs than the others do, so that each goes on from another one.
    void diverge(std::size_t first_job) {
        for (std::size_t server = 0; server < served.size(); ++server) {
            for (std::size_t i = 0; i <= server; ++i)
                servers.submit({.server = server, .job = first_job + 7 * server + i, .takes = 1ms});
        }
        servers.run_dry();
        run_for(1s);
        for (auto& each : served) each.clear();
    }
    // Notes the group of each epoch.
    void run_for(Duration span) {
        const Instant end = after(servers.now(), span);
        while (servers.now() < end) {
            REQUIRE(servers.world().step());
            note_epoch();
        }
    }
    void note_epoch() {
        if (servers.epochs().epoch() == noted_) return;
        noted_ = servers.epochs().epoch();
        const EpochFrame frame(epoch_parts());
        const EpochPartData part = frame.part(servers.epochs().data(), kGroupsPartName);
        filled.push_back(part.filled);
        const auto next = EpochDemand::read(part.bytes).next();
        if (next) turns.push_back(next->group);
    }
    // Closed loops: each job always has so many requests at each server.
    void fill(std::size_t jobs, std::size_t depth, Duration takes) {
        refills = true;
        for (std::size_t server = 0; server < served.size(); ++server) {
            for (std::size_t i = 0; i < depth * jobs; ++i)
                servers.submit({.server = server, .job = (i * 7 + server) % jobs, .takes = takes});
        }
    }

    sim::ScheduledServers servers;
    std::vector<std::vector<std::size_t>> served;
    std::vector<GroupId> turns;
    std::vector<std::uint32_t> filled;
    bool refills = false;

private:
    eh::EpochNumber noted_ = 0;
};

// The jobs in the order of their first requests.
std::vector<std::size_t> first_served(const std::vector<std::size_t>& jobs) {
    std::vector<std::size_t> order;
    for (const std::size_t job : jobs) {
        if (std::ranges::find(order, job) == order.end()) order.push_back(job);
    }
    return order;
}

GroupId id_of_job(std::size_t job) {
    return group_id_of("default{job=app-" + std::to_string(job) + "}");
}

}  // namespace

TEST_CASE("lrs in step: all servers serve the same job at a time, whatever came before", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        InStep all(seed, 8, {}, {.cost = 100us, .raggedness = 1ms, .seed = seed});
        all.diverge(100);
        core::Random random(seed);
        for (std::size_t server = 0; server < 8; ++server) {
            all.servers.submit({.server = server, .job = 900 + server, .takes = 20ms});
            for (const std::size_t job : {0U, 1U, 2U, 3U, 4U, 5U}) {
                for (std::uint64_t i = 0; i < 3; ++i)
                    all.servers.submit({.server = server, .job = (job + server) % 6, .takes = 5ms});
            }
        }
        all.servers.run_dry();
        for (std::size_t server = 0; server < 8; ++server) {
            CHECK(all.served[server].size() == 19);
            all.served[server].erase(all.served[server].begin());
            CHECK(first_served(all.served[server]).size() == 6);
            CHECK(all.served[server] == all.served[0]);
        }
    }
}

TEST_CASE("lrs in step: without epochs each goes on by itself, and they are not in step", "[lrs]") {
    InStep all(1, 8);
    for (std::size_t server = 0; server < 8; ++server) all.servers.cut_off(server, true);
    all.diverge(100);
    const eh::EpochNumber before = all.servers.epochs().epoch();
    all.fill(6, 3, 5ms);
    all.servers.run_for(1s);
    std::set<std::size_t> first;
    for (const auto& jobs : all.served) {
        CHECK(jobs.size() >= 199);
        CHECK(first_served(jobs).size() == 6);
        first.insert(jobs[20]);
    }
    CHECK(first.size() > 1);
    CHECK(all.servers.epochs().epoch() == before);
}

TEST_CASE("lrs in step: turns of the length have the shares of the weights", "[lrs]") {
    InStep all(2, 4,
               {.length = 20ms,
                .rules = {"two job=app-1 weight=2", "four job={app-2} weight=4",
                          "three job=app-3 weight=3"}},
               {.cost = 50us, .raggedness = 100us});
    all.fill(4, 50, 1ms);
    all.run_for(20s);
    for (const auto& jobs : all.served) {
        const auto total = static_cast<double>(jobs.size());
        CHECK(total > 19'900);
        for (const auto& [job, weight] :
             std::map<std::size_t, double>{{0, 1}, {1, 2}, {2, 4}, {3, 3}}) {
            CAPTURE(job);
            const auto count = static_cast<double>(std::ranges::count(jobs, job));
            CHECK(count / total > weight / 10 * 0.95);
            CHECK(count / total < weight / 10 * 1.05);
        }
    }
}

TEST_CASE("lrs in step: of more groups than a contribution names, each has a turn in a round",
          "[lrs]") {
    constexpr std::size_t kJobs = 300;
    STATIC_REQUIRE(kJobs > 4 * EpochDemand::kGroupsMax);
    // Nobody serves others meanwhile, so that turns are all there is.
    InStep all(3, 3, {.length = 2ms, .others = OtherGroups::kWait}, {.cost = 20us});
    all.fill(kJobs, 5, 1ms);
    all.run_for(3s);
    REQUIRE(all.turns.size() > 3 * kJobs);
    // In any row of as many turns as there are groups, each group has one.
    for (std::size_t from = 1; from + kJobs <= all.turns.size(); from += 37) {
        const auto row = all.turns.begin() + static_cast<std::ptrdiff_t>(from);
        CHECK(std::set<GroupId>(row, row + kJobs).size() == kJobs);
    }
    for (const auto& jobs : all.served) CHECK(first_served(jobs).size() == kJobs);
}

TEST_CASE("lrs in step: who waits at one server only has turns, and new ones do not displace it",
          "[lrs]") {
    InStep all(4, 4, {.length = 5ms}, {.cost = 50us});
    all.refills = false;
    // New jobs all the time, and one that waits since the beginning at the last server.
    for (std::size_t server = 0; server < 4; ++server) {
        for (std::size_t i = 0; i < 40; ++i)
            all.servers.submit({.server = server, .job = 1000 + i, .takes = 1ms});
    }
    all.servers.submit({.server = 3, .job = 1, .takes = 1ms});
    std::size_t job = 2000;
    while (std::ranges::find(all.served[3], 1U) == all.served[3].end()) {
        for (std::size_t server = 0; server < 4; ++server)
            all.servers.submit({.server = server, .job = job, .takes = 1ms});
        ++job;
        REQUIRE(job < 2500);
        all.run_for(1ms);
    }
    SUCCEED();
}

TEST_CASE("lrs in step: one that lost epochs serves on alone, and is in step again", "[lrs]") {
    InStep all(5, 4, {.length = 10ms}, {.cost = 100us, .raggedness = 200us});
    all.diverge(100);
    all.fill(5, 20, 1ms);
    all.run_for(500ms);
    const std::size_t before = all.turns.size();
    all.servers.cut_off(2, true);
    all.run_for(5s);
    // The others went on all the time, and it served as much as they did.
    CHECK(all.turns.size() > before + 400);
    CHECK(all.filled.back() == 3);
    CHECK(all.served[2].size() + 20 > all.served[1].size());
    CHECK(all.servers.scheduler(2).policy_figures().epoch.get() == 0);

    all.servers.cut_off(2, false);
    all.run_for(2s);
    CHECK(all.filled.back() == 4);
    // From here on the same at the same time, but for the edges of turns.
    for (auto& each : all.served) each.clear();
    const std::size_t from = all.turns.size();
    all.run_for(1s);
    for (std::size_t server = 0; server < 4; ++server) {
        std::size_t same = 0;
        const std::size_t count = std::min(all.served[server].size(), all.served[0].size());
        for (std::size_t i = 0; i < count; ++i) {
            if (all.served[server][i] == all.served[0][i]) ++same;
        }
        CAPTURE(server, same, count);
        CHECK(count > 950);
        CHECK(same * 100 > count * 80);
    }
    // Each of the five in each row of five turns.
    for (std::size_t i = from; i + 5 <= all.turns.size(); ++i) {
        const auto row = all.turns.begin() + static_cast<std::ptrdiff_t>(i);
        CHECK(std::set<GroupId>(row, row + 5).size() == 5);
    }
}

TEST_CASE("lrs in step: when all lose an epoch all serve on, and go on where they were", "[lrs]") {
    InStep all(6, 3, {.length = 10ms, .at_end = AtEnd::kPause, .others = OtherGroups::kWait},
               {.cost = 100us});
    all.fill(4, 20, 1ms);
    all.run_for(105ms);
    const GroupId last = all.turns.back();
    for (std::size_t server = 0; server < 3; ++server) all.servers.cut_off(server, true);
    const std::size_t before = all.served[0].size();
    all.servers.run_for(4s);
    // What waits or pauses in epochs does not without them: the first error came after the timeout.
    CHECK(all.served[0].size() > before + 1900);
    for (std::size_t server = 0; server < 3; ++server) all.servers.cut_off(server, false);
    all.turns.clear();
    all.run_for(4s);
    REQUIRE(all.turns.size() > 4);
    CHECK(all.turns.front() != last);
    CHECK(all.filled.back() == 3);
}

TEST_CASE("lrs in step: one that comes late takes part from its second epoch on", "[lrs]") {
    InStep all(7, 3, {.length = 10ms, .others = OtherGroups::kWait}, {.cost = 100us});
    all.fill(4, 20, 1ms);
    all.run_for(300ms);
    const std::size_t late = all.servers.add_server();
    all.served.emplace_back();
    // A job that waits nowhere else has turns, too.
    for (std::size_t i = 0; i < 20; ++i)
        all.servers.submit({.server = late, .job = 50, .takes = 1ms});
    const std::size_t from = all.turns.size();
    all.run_for(200ms);
    const auto found = std::find(all.turns.begin() + static_cast<std::ptrdiff_t>(from),
                                 all.turns.end(), id_of_job(50));
    // Its second epoch is the first that it contributes to, and a round is of five turns.
    CHECK(found - all.turns.begin() <= static_cast<std::ptrdiff_t>(from + 2 + 5));
    CHECK(std::ranges::find(all.served[late], 50U) != all.served[late].end());
}

TEST_CASE("lrs in step: a change of the policy, node by node, never stops epochs", "[lrs]") {
    InStep all(8, 4, {.length = 10ms}, {.cost = 100us});
    all.fill(4, 20, 1ms);
    all.run_for(200ms);
    const auto epochs_in = [&](Duration span) {
        const eh::EpochNumber before = all.servers.epochs().epoch();
        all.run_for(span);
        return all.servers.epochs().epoch() - before;
    };
    for (std::size_t server = 0; server < 3; ++server) {
        all.servers.use(server, choice_of("crr"));
        // Those who have another policy do not slow down the others.
        CHECK(epochs_in(500ms) > 40);
        CHECK(all.filled.back() == 3 - server);
    }
    all.servers.use(3, choice_of("tbf"));
    CHECK(epochs_in(5s) >= 4);
    CHECK(all.filled.back() == 0);
    for (std::size_t server = 0; server < 4; ++server)
        all.servers.use(server, choice_of("epoch_groups", {.length = 10ms}));
    CHECK(epochs_in(2s) > 40);
    CHECK(all.filled.back() == 4);
    // Other settings at one of them: it paces its own turns only.
    all.servers.use(1, choice_of("epoch_groups", {.length = 30ms, .rules = {"every * by=none"}}));
    CHECK(epochs_in(1s) > 20);
    for (const auto& jobs : all.served) CHECK(jobs.size() > 5000);
}

TEST_CASE("lrs in step: the localities of a node are in step with each other", "[lrs]") {
    const std::uint64_t seed = GENERATE(1U, 2U, 3U);
    fopd::testing::Replay replay(seed);
    core::VirtualWorld world(seed);
    std::vector<std::unique_ptr<core::Reactor>> reactors;
    for (int i = 0; i < 5; ++i) reactors.push_back(world.make_reactor());
    eh::LocalEpochHandler handler(epoch_rules(2s));
    eh::LocalityFold fold(*reactors.front(), handler);

    struct Locality final : Getter {
        Locality(core::Reactor& reactor, eh::LocalityFold& of, PolicyNode& node,
                 const PolicyChoice& choice)
            : end(reactor, of),
              scheduler(reactor, choice.make({.seed = 1, .share = choice.share(node, {})}), &end) {}
        void on_request(Request* request) override {
            if (request != nullptr) taken.emplace_back(request->attributes.job);
        }
        eh::LocalityFold::End end;
        Scheduler scheduler;
        std::vector<std::string> taken;
    };
    PolicyNode node(seed);
    std::vector<std::unique_ptr<Locality>> localities;
    const PolicyChoice choice =
        choice_of("epoch_groups", {.length = 100ms, .others = OtherGroups::kWait});
    for (const auto& reactor : reactors)
        localities.push_back(std::make_unique<Locality>(*reactor, fold, node, choice));

    std::deque<Request> requests;
    const std::vector<std::string> jobs{"a", "b", "c", "d"};
    for (std::size_t i = 0; i < localities.size(); ++i) {
        for (std::size_t job = 0; job < 4; ++job) {
            Request& request = requests.emplace_back();
            request.attributes.job = jobs[(job + i) % 4];
            localities[i]->scheduler.incoming(request);
        }
    }
    for (int round = 1; round <= 4; ++round) {
        // All have an epoch in which a group has its turn.
        world.run_for(300ms);
        for (std::size_t i = 0; i < localities.size(); ++i) {
            localities[i]->scheduler.next(*localities[i]);
            // Those who have not asked yet have what is left of the turn.
        }
        world.run_for(300ms);
        for (const auto& each : localities) {
            REQUIRE(each->taken.size() == static_cast<std::size_t>(round));
            CHECK(each->taken == localities.front()->taken);
        }
    }
    for (const auto& each : localities) {
        CHECK(each->scheduler.policy_figures().epoch.get() > 4);
        each->scheduler.shutdown();
    }
    world.run_for(1s);
}
