// Goal: the edge cases of epochs end as docs/reference/epochs.md says. Method: small worlds in
// virtual time; the laws of epochs are checked at each step.

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/epoch_scenarios.h"
#include "tests/eh/epoch_swarm.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using fopd::eh::testing::quick_world;
using sim::EpochWorld;
using sim::EpochWorldOptions;

namespace {

std::size_t errors_in(const EpochWorld& world, std::size_t member) {
    const auto& answers = world.answers(member);
    return static_cast<std::size_t>(
        std::ranges::count_if(answers, [](const auto& answer) { return !answer.has_value(); }));
}

void run_all(EpochWorld& world, std::size_t members, Duration think) {
    for (std::size_t i = 0; i < members; ++i) world.run_participant(i, think);
}

}  // namespace

TEST_CASE("eh peers: refusals come at once, and nothing follows them", "[eh]") {
    const MemberOptions options;
    Member member(options, {.name = "a", .address = "a"}, 0, Instant{1s});
    const std::vector<std::byte> too_many(kEpochBytesMax + 1);

    CHECK(member.next_epoch(0, too_many, Instant{1s}).error().os_errno == EMSGSIZE);
    CHECK(member.next_epoch(7, {}, Instant{1s}).error().os_errno == EINVAL);
    CHECK(member.take_effects().empty());
    CHECK(member.state() == EpochState::kDetached);
    REQUIRE(member.next_epoch(0, {}, Instant{1s}));
    CHECK(member.next_epoch(0, {}, Instant{1s}).error().os_errno == EALREADY);
    (void)member.take_effects();
    member.last_epoch(Instant{2s});
    const auto effects = member.take_effects();
    REQUIRE(effects.size() == 1);
    CHECK(std::get<Answer>(effects[0]).epoch.error().os_errno == ECANCELED);
}

TEST_CASE("eh peers: no incarnation is used before it is durable", "[eh]") {
    MemberOptions options;
    options.root = {.name = "root", .address = "r"};
    Member member(options, {.name = "a", .address = "a"}, 41, Instant{1s});
    REQUIRE(member.next_epoch(0, {}, Instant{1s}));
    auto effects = member.take_effects();
    REQUIRE(effects.size() == 1);
    CHECK(std::get<Persist>(effects[0]).incarnation == 42);
    member.on_time(Instant{2s});
    CHECK(member.take_effects().empty());

    member.on_persisted(42, Instant{2s});

    effects = member.take_effects();
    REQUIRE(effects.size() == 1);
    CHECK(std::get<Send>(effects[0]).message.incarnation == 42);
}

TEST_CASE("eh peers: members join, with a root that alone has the store, or with any", "[eh]") {
    const bool is_shared = GENERATE(false, true);
    EpochWorldOptions options = quick_world(5);
    options.is_shared = is_shared;
    EpochWorld world(options);
    run_all(world, 5, 10ms);

    CHECK(world.run_until_true(world.now() + 3s,
                               [&] { return world.all_joined() && world.laws().newest() > 20; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: the first epoch waits for those expected, who are admitted one by one",
          "[eh]") {
    EpochWorldOptions options = quick_world(5);
    options.member.expect = 5;
    EpochWorld world(options);
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(world.laws().newest() == 0);
        world.run_participant(i, 10ms);
        world.run_until(world.now() + 100ms);
    }

    CHECK(world.run_until_true(world.now() + 200ms, [&] { return world.laws().newest() > 0; }));
    CHECK(world.all_joined());
    for (std::size_t i = 0; i < 5; ++i) CHECK(errors_in(world, i) == 0);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: an epoch costs three messages for each member but the root", "[eh]") {
    EpochWorld world(quick_world(7));
    world.begin_joined();
    world.run_until(world.now() + 10ms);
    world.stop_participants();
    const std::uint64_t before = world.messages();
    for (std::size_t i = 0; i < 7; ++i) world.run_participant(i, 1ms);
    world.run_until(world.now() + 50ms);
    CHECK(world.laws().newest() == 1);
    CHECK(world.messages() - before == 3 * 6);

    // Nothing but beats while nobody calls.
    const std::uint64_t beats = world.messages("beat");
    const std::uint64_t all = world.messages();
    world.run_until(world.now() + 10s);
    CHECK(world.messages() - all == world.messages("beat") - beats);
}

TEST_CASE("eh peers: one silent member is evicted, and the others move in time", "[eh]") {
    const std::size_t silent = GENERATE(1U, 3U, 6U);
    EpochWorld world(quick_world(7));
    world.begin_joined();
    run_all(world, 7, 10ms);
    world.run_until(world.now() + 100ms);
    world.crash(silent);
    const Instant crashed = world.now();
    const EpochNumber last = world.laws().newest();

    // Ready within 10 ms; then the timeout, and twice the grace.
    const Duration bound = 10ms + 1s + 2 * Duration(100ms) + 20ms;
    CHECK(world.run_until_true(crashed + bound, [&] { return world.laws().newest() > last + 1; }));
    CHECK(world.count(EventKind::kEvicts) == 1);
    for (std::size_t i = 0; i < 7; ++i) CHECK(errors_in(world, i) == 0);
    // It returns by itself.
    world.start(silent);
    CHECK(world.run_until_true(world.now() + 2s, [&] { return world.all_joined(); }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a member that is ready within the timeout is not evicted", "[eh]") {
    EpochWorld world(quick_world(4));
    world.begin_joined();
    run_all(world, 3, 10ms);
    world.run_participant(3, 990ms);
    world.run_until(world.now() + 20s);
    CHECK(world.count(EventKind::kEvicts) == 0);
    CHECK(world.laws().newest() > 15);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a killed root is replaced within twice root_silent", "[eh]") {
    EpochWorld world(quick_world(5));
    world.begin_joined();
    run_all(world, 5, 10ms);
    world.run_until(world.now() + 300ms);
    world.crash(0);
    const EpochNumber last = world.laws().newest();
    CHECK(world.run_until_true(world.now() + 800ms, [&] { return world.laws().newest() > last; }));
    for (std::size_t i = 1; i < 5; ++i) CHECK(errors_in(world, i) == 0);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: of a partition the majority goes on, the others get errors only", "[eh]") {
    EpochWorld world(quick_world(5));
    world.begin_joined();
    run_all(world, 5, 10ms);
    world.run_until(world.now() + 300ms);
    const Instant healed = world.now() + 10s;
    // The root is with the minority.
    for (const std::size_t one : {0U, 1U}) {
        for (const std::size_t other : {2U, 3U, 4U}) {
            world.block(one, other, healed);
            world.block(other, one, healed);
        }
    }
    world.run_until(world.now() + 5s);
    const std::size_t few = world.answers(0).size();
    const std::size_t many = world.answers(2).size();
    world.run_until(healed - 1ms);
    for (std::size_t i = few; i < world.answers(0).size(); ++i) CHECK_FALSE(world.answers(0)[i]);
    CHECK(world.answers(0).size() > few);
    CHECK(world.answers(2).size() > many + 10);

    CHECK(world.run_until_true(healed + 6s, [&] { return world.all_joined(); }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: an administrator lets a minority go on, and the others join it later",
          "[eh]") {
    // 0: the root lives. 1: it lives, and a new root may be found. 2: another member has to become
    // root. 3: all were killed, and the root alone comes back.
    const int how = GENERATE(0, 1, 2, 3);
    CAPTURE(how);
    EpochWorldOptions options = quick_world(4);
    options.is_shared = how == 1 || how == 2;
    EpochWorld world(options);
    run_all(world, 4, 10ms);
    REQUIRE(world.run_until_true(world.now() + 5s, [&] { return world.all_joined(); }));
    world.run_until(world.now() + 300ms);
    const auto position = [&](std::size_t i) {
        return *world.member(0).view()->find("m" + std::to_string(i));
    };
    std::size_t survivor = 0;
    while (position(survivor) != (how == 2 ? 2 : 0)) ++survivor;
    for (std::size_t i = 0; i < 4; ++i) {
        if (i != survivor || how == 3) world.crash(i);
    }
    if (how == 3) world.start(survivor);
    const EpochNumber last = world.laws().newest();
    const Instant waived = world.now() + 10s;
    world.run_until(waived);
    CHECK(world.laws().newest() == last);

    world.waive_majority(survivor);
    const Duration patience = options.member.watchdog();
    CHECK(
        world.run_until_true(waived + patience, [&] { return world.laws().newest() > last + 5; }));
    CHECK(world.member(survivor).view()->size() == 1);

    for (std::size_t i = 0; i < 4; ++i) {
        if (i != survivor) world.start(i);
    }
    CHECK(world.run_until_true(world.now() + 6s, [&] { return world.all_joined(); }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a majority that was not needed is asked for again later", "[eh]") {
    EpochWorldOptions options = quick_world(3);
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 3, 10ms);
    world.run_until(world.now() + 300ms);
    const bool is_view_changed = GENERATE(false, true);
    world.waive_majority(0);
    if (is_view_changed) {
        // The waiver is used up by this eviction.
        world.crash(1);
        world.run_until(world.now() + 3s);
        REQUIRE(world.member(0).view()->size() == 2);
        world.start(1);
        REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.all_joined(); }));
    } else {
        world.run_until(world.now() + options.member.watchdog());
    }
    world.crash(1);
    world.crash(2);
    world.run_until(world.now() + 200ms);
    const EpochNumber last = world.laws().newest();
    world.run_until(world.now() + 20s);
    CHECK(world.laws().newest() == last);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a paused root learns that others went on", "[eh]") {
    EpochWorld world(quick_world(4));
    world.begin_joined();
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 300ms);
    world.pause(0, world.now() + 5s);
    world.run_until(world.now() + 6500ms);
    CHECK(world.all_joined());
    CHECK_FALSE(world.member(0).is_root());
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: all killed and started again, numbers grow", "[eh]") {
    const bool is_shared = GENERATE(false, true);
    EpochWorldOptions options = quick_world(4);
    options.is_shared = is_shared;
    EpochWorld world(options);
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 2s);
    const EpochNumber last = world.laws().newest();
    REQUIRE(last > 0);
    for (std::size_t i = 0; i < 4; ++i) world.crash(i);
    world.run_until(world.now() + 1s);
    for (std::size_t i = 0; i < 4; ++i) world.start(i);
    CHECK(world.run_until_true(world.now() + 4s,
                               [&] { return world.all_joined() && world.laws().newest() > last; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: who leaves does not hold up the others", "[eh]") {
    const std::size_t leaver = GENERATE(0U, 1U, 4U);
    EpochWorld world(quick_world(5));
    world.begin_joined();
    run_all(world, 5, 10ms);
    world.run_until(world.now() + 300ms);
    const Instant left = world.now();
    const EpochNumber last = world.laws().newest();
    world.leave(leaver);
    CHECK(world.run_until_true(left + 200ms, [&] { return world.laws().newest() > last + 3; }));
    world.run_until(left + 1s);
    CHECK_FALSE(world.member(leaver).is_seated());
    for (std::size_t i = 0; i < 5; ++i) CHECK(errors_in(world, i) <= (i == leaver ? 1U : 0U));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: after all have left, some of them go on without the others", "[eh]") {
    const Duration apart = GENERATE(0us, 300us, 1ms, 3ms, 10ms, 60ms);
    // What the root sends while it leaves is lost, as it ends.
    const bool is_lost = GENERATE(false, true);
    const bool is_shared = GENERATE(true, false);
    CAPTURE(apart.count(), is_lost, is_shared);
    EpochWorldOptions options = quick_world(3);
    options.is_shared = is_shared;
    EpochWorld world(options);
    run_all(world, 3, 10ms);
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.laws().newest() > 20; }));
    for (std::size_t i = 0; i < 3; ++i) {
        world.leave(i);
        for (std::size_t other = i + 1; is_lost && other < 3; ++other)
            world.block(i, other, world.now() + 5s);
        world.run_until(world.now() + apart);
    }
    // As daemons that stop: each ends when it has left.
    const auto has_left = [&](std::size_t i) {
        return !world.runs(i) || world.member(i).standing() == Standing::kDetached;
    };
    const Instant left = world.now();
    CHECK(world.run_until_true(left + 600ms, [&] {
        for (std::size_t i = 0; i < 3; ++i) {
            if (world.runs(i) && has_left(i)) world.crash(i);
        }
        return has_left(0) && has_left(1) && has_left(2);
    }));
    world.run_until(left + 6s);
    const EpochNumber last = world.laws().newest();
    // A root that alone has the store cannot let go those that leave after it.
    if (is_shared || apart < options.member.join_batch)
        CHECK(world.laws().history().back()->participants() == 0);
    world.start(0);
    world.start(1);
    run_all(world, 2, 10ms);
    CHECK(world.run_until_true(world.now() + 3s,
                               [&] { return world.all_joined() && world.laws().newest() > last; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: who stops while it joins does not hold up the others", "[eh]") {
    const bool is_shared = GENERATE(false, true);
    const auto late = GENERATE(500, 2000, 10'000, 23'000, 26'000, 28'000, 32'000);
    EpochWorldOptions options = quick_world(4);
    options.is_shared = is_shared;
    EpochWorld world(options);
    run_all(world, 3, 10ms);
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.laws().newest() > 5; }));
    world.run_participant(3, 10ms);
    world.run_until(world.now() + late * Duration(1us));
    world.leave(3);
    // As a daemon that stops: it ends when it has left.
    const Instant left = world.now();
    const auto has_left = [&] { return world.member(3).standing() == Standing::kDetached; };
    CHECK(world.run_until_true(left + 200ms, has_left));
    world.crash(3);
    const EpochNumber last = world.laws().newest();
    CHECK(world.run_until_true(left + 300ms, [&] { return world.laws().newest() > last + 3; }));
    world.run_until(left + 3s);
    CHECK(world.count(EventKind::kEvicts) == 0);
    for (std::size_t i = 0; i < 3; ++i) CHECK(errors_in(world, i) == 0);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a root that leaves tells the next one, however many join with that", "[eh]") {
    EpochWorld world(quick_world(400));
    run_all(world, 2, 10ms);
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.laws().newest() > 5; }));
    REQUIRE(world.member(0).is_root());
    for (std::size_t i = 2; i < 400; ++i) world.run_participant(i, 10ms);
    world.run_until(world.now() + 15ms);
    REQUIRE(world.laws().history().back()->size() == 2);
    world.leave(0);

    // Before it could have noticed by itself that the root is silent.
    CHECK(world.run_until_true(world.now() + 250ms, [&] { return world.member(1).is_root(); }));
    CHECK(world.member(1).view()->size() > 300);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a member that is started again is back in less than the grace", "[eh]") {
    const std::size_t one = GENERATE(0U, 2U);
    EpochWorld world(quick_world(4));
    world.begin_joined();
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 200ms);
    world.crash(one);
    world.start(one);
    CHECK(world.run_until_true(world.now() + 60ms, [&] { return world.all_joined(); }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: many that are started again together cost a few views", "[eh]") {
    constexpr std::size_t kMembers = 24;
    EpochWorldOptions options = quick_world(kMembers);
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, kMembers, 10ms);
    world.run_until(world.now() + 300ms);
    const std::size_t views = world.laws().history().size();
    const EpochNumber last = world.laws().newest();
    // One after the other, within twice the time for which newcomers are collected.
    for (std::size_t i = 4; i < kMembers; ++i) {
        world.crash(i);
        world.start(i);
        world.run_until(world.now() + options.member.join_batch / 10);
    }
    CHECK(world.run_until_true(
        world.now() + 2s, [&] { return world.all_joined() && world.laws().newest() > last + 10; }));
    CHECK(world.laws().history().size() <= views + 6);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: each view is told once, by its root", "[eh]") {
    EpochWorld world(quick_world(5));
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 500ms);
    world.run_participant(4, 10ms);
    world.run_until(world.now() + 500ms);
    world.crash(3);  // Is evicted.
    world.run_until(world.now() + 2s);
    world.start(3);
    world.run_until(world.now() + 1s);
    world.crash(0);  // Another becomes root.
    world.run_until(world.now() + 1s);
    REQUIRE(world.member(1).is_root());
    world.leave(1);  // It hands over.
    world.run_until(world.now() + 1s);

    REQUIRE(world.count(EventKind::kTakesOver) == 1);
    const auto takeover = std::ranges::find_if(world.events(), [](const EpochWorld::Seen& seen) {
        return seen.event.kind == EventKind::kTakesOver;
    });
    CHECK(takeover->event.name == "m0");
    CHECK(takeover->event.left_out == std::vector<std::string>{"m0"});
    for (const ViewHandle& view : world.laws().history()) {
        const auto told = std::ranges::count_if(world.events(), [&](const EpochWorld::Seen& seen) {
            const bool is_view =
                seen.event.kind == EventKind::kView || seen.event.kind == EventKind::kTakesOver;
            const bool is_root = view->root().name == sim::EpochLaws::name_of(seen.member);
            return is_view && is_root && seen.event.view == view->number();
        });
        CAPTURE(view->number());
        CHECK(told == 1);
    }
    CHECK(world.count(EventKind::kView) + 1 == world.laws().history().size());
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: without the store epochs go on with the same members", "[eh]") {
    EpochWorld world(quick_world(4));
    world.begin_joined();
    run_all(world, 4, 10ms);
    world.break_store(world.now() + 5s);
    world.run_until(world.now() + 200ms);
    world.crash(3);
    world.start(3);
    const EpochNumber last = world.laws().newest();
    // The new incarnation cannot join, and the old one is silent: errors, but all stay members.
    world.run_until(world.now() + 4s);
    CHECK(world.laws().newest() <= last + 1);
    CHECK(world.count(EventKind::kLost) <= 2);
    CHECK(world.run_until_true(
        world.now() + 6s, [&] { return world.all_joined() && world.laws().newest() > last + 3; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: with a store that is full epochs go on, and it is tried now and then",
          "[eh]") {
    EpochWorldOptions options = quick_world(4);
    options.member.block = 400;
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 4, 10ms);
    // From here on the root wants a view with more epoch numbers.
    REQUIRE(world.run_until_true(world.now() + 10s, [&] { return world.laws().newest() > 290; }));
    const Instant begin = world.now();
    const std::uint64_t swaps = world.swaps();
    world.fill_store(begin + 5s);
    // 110 epochs, as quickly as participants call.
    CHECK(world.run_until_true(begin + 1300ms, [&] { return world.laws().newest() == 400; }));
    const auto tenths = static_cast<std::uint64_t>((world.now() - begin) / 100ms);
    CHECK(world.swaps() - swaps >= tenths / 2);
    CHECK(world.swaps() - swaps <= tenths + 1);
    CHECK(world.count(EventKind::kAbdicates) == 0);
    for (std::size_t i = 0; i < 4; ++i) CHECK(errors_in(world, i) == 0);
    CHECK(world.run_until_true(begin + 6s, [&] { return world.laws().newest() > 410; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a view that the store has lost is told once, and epochs go on", "[eh]") {
    const bool is_shared = GENERATE(true, false);
    const std::size_t keeps = GENERATE(0U, 1U);
    EpochWorldOptions options = quick_world(4);
    options.is_shared = is_shared;
    options.member.block = 400;
    EpochWorld world(options);
    run_all(world, 4, 10ms);
    REQUIRE(world.run_until_true(world.now() + 10s, [&] { return world.laws().newest() > 250; }));
    REQUIRE(world.laws().history().size() > keeps);
    const Instant lost = world.now();
    const std::uint64_t reads = world.reads();
    world.lose_views(keeps);
    CHECK(world.run_until_true(lost + 2s, [&] { return world.laws().newest() == 400; }));
    world.run_until(lost + 5s);
    // The grace is 100 ms, the longest pause a second.
    CHECK(world.reads() - reads <= 12);
    CHECK(world.count(EventKind::kViewLost) == 1);
    CHECK(world.count(EventKind::kAbdicates) == 0);
    CHECK(world.count(EventKind::kEvicts) == 0);
    CHECK(world.member(0).is_root());
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a newcomer makes no second cluster beside members that it knows", "[eh]") {
    EpochWorldOptions options = quick_world(4);
    for (std::size_t i = 0; i < 4; ++i) {
        options.member.others.push_back(
            {.name = sim::EpochLaws::name_of(i), .address = "a" + std::to_string(i)});
    }
    EpochWorld world(options);
    run_all(world, 3, 10ms);
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.laws().newest() > 20; }));
    world.lose_views(0);
    const std::uint64_t swaps = world.swaps();
    const EpochNumber last = world.laws().newest();
    world.run_participant(3, 10ms);
    world.run_until(world.now() + 10s);
    CHECK(world.swaps() == swaps);
    CHECK_FALSE(world.member(3).is_seated());
    CHECK(world.laws().newest() > last + 100);
    CHECK(world.count(EventKind::kViewLost) == 1);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a static root that has lost its file goes on behind the numbers of others",
          "[eh]") {
    EpochWorldOptions options = quick_world(3);
    options.is_shared = false;
    // The root forgets its own numbers, too.
    options.member.expect = 3;
    EpochWorld world(options);
    run_all(world, 3, 10ms);
    world.run_until(world.now() + 1s);
    // Views get higher numbers than they will have afterwards.
    for (int i = 0; i < 4; ++i) {
        world.crash(2);
        world.start(2);
        world.run_until(world.now() + 300ms);
    }
    world.crash(2);
    world.crash(0);
    const EpochNumber last = world.laws().newest();
    REQUIRE(last > 50);
    world.begin_views_again();
    world.start(0);
    world.start(2);
    CHECK(world.run_until_true(
        world.now() + 5s, [&] { return world.all_joined() && world.laws().newest() > last + 20; }));
    const std::size_t errors = errors_in(world, 0);
    world.run_until(world.now() + 10s);
    CHECK(world.laws().newest() > last + 500);
    CHECK(world.count(EventKind::kEvicts) == 0);
    CHECK(errors_in(world, 0) == errors);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a member that has lost its file comes back after all were killed", "[eh]") {
    EpochWorldOptions options = quick_world(2);
    options.is_shared = GENERATE(false, true);
    EpochWorld world(options);
    run_all(world, 2, 10ms);
    for (int i = 0; i < 10; ++i) {
        REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.all_joined(); }));
        world.crash(1);
        world.start(1);
    }
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.all_joined(); }));
    world.crash(0);
    world.crash(1);
    world.forget_incarnation(1);
    const EpochNumber last = world.laws().newest();
    world.start(0);
    world.start(1);
    CHECK(world.run_until_true(world.now() + 3s,
                               [&] { return world.all_joined() && world.laws().newest() > last; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a root that comes back alone says whom it waits for, or waits for nobody",
          "[eh]") {
    EpochWorldOptions options = quick_world(3);
    options.is_shared = false;
    options.member.quorum = GENERATE(Quorum::kParticipants, Quorum::kStore);
    EpochWorld world(options);
    run_all(world, 3, 10ms);
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.all_joined(); }));
    for (std::size_t i = 0; i < 3; ++i) world.crash(i);
    const EpochNumber last = world.laws().newest();
    world.start(0);
    world.run_until(world.now() + options.member.root_silent + 1s);
    const bool waits = options.member.quorum == Quorum::kParticipants;
    CHECK((world.laws().newest() == last) == waits);
    REQUIRE(world.count(EventKind::kAwaits) == (waits ? 1U : 0U));
    if (waits) {
        const auto told = std::ranges::find(world.events(), EventKind::kAwaits,
                                            [](const auto& seen) { return seen.event.kind; });
        CHECK(told->event.left_out == std::vector<std::string>{"m1", "m2"});
    }
    world.start(1);
    world.start(2);
    CHECK(world.run_until_true(world.now() + 3s,
                               [&] { return world.all_joined() && world.laws().newest() > last; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a liar's request to join leaves numbers for those that join later", "[eh]") {
    EpochWorld world(quick_world(4));
    world.begin_joined();
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 100ms);
    world.crash(3);
    for (Incarnation incarnation = 2; incarnation < 5; ++incarnation) {
        // In the name of a member that does not run.
        world.inject(
            0, {.name = "m3", .address = "a3"},
            {.incarnation = incarnation,
             .body = Join{.address = "a3", .rules = world.member(0).rules(), .newest = kEpochMax}});
        world.run_until(world.now() + 3s);
    }
    CHECK(world.laws().newest() > kEpochMax / 2);
    world.crash(2);
    world.start(2);
    const EpochNumber last = world.laws().newest();
    CHECK(world.run_until_true(
        world.now() + 5s, [&] { return world.all_joined() && world.laws().newest() > last + 10; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: of two halves the one with the lowest name goes on if it has the root",
          "[eh]") {
    const bool is_shared = GENERATE(false, true);
    EpochWorldOptions options = quick_world(4);
    options.is_shared = is_shared;
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 300ms);
    const Instant healed = world.now() + 10s;
    const bool has_lowest = GENERATE(false, true);
    // m0 is the root, and has the lowest name, which it loses with that in a root of another name.
    const std::size_t with_root = has_lowest ? 1 : 3;
    for (const std::size_t one : {std::size_t{0}, with_root}) {
        for (std::size_t other = 1; other < 4; ++other) {
            if (other == with_root) continue;
            world.block(one, other, healed);
            world.block(other, one, healed);
        }
    }
    world.run_until(world.now() + 5s);
    const std::size_t moved = world.answers(0).size();
    const std::size_t stayed = world.answers(2).size();
    world.run_until(healed - 1ms);
    CHECK(world.answers(0).size() > moved + 10);
    for (std::size_t i = stayed; i < world.answers(2).size(); ++i) CHECK_FALSE(world.answers(2)[i]);
    CHECK(world.run_until_true(healed + 6s, [&] { return world.all_joined(); }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: each error says what has happened to the call", "[eh]") {
    const auto codes_of = [](const EpochWorld& world, std::size_t member) {
        std::vector<int> codes;
        for (const auto& answer : world.answers(member)) {
            if (!answer) codes.push_back(answer.error().os_errno);
        }
        return codes;
    };
    EpochWorldOptions options = quick_world(4);
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 300ms);

    SECTION("a member that was paused has been evicted") {
        world.pause(3, world.now() + 2500ms);
        world.run_until(world.now() + 5s);
        CHECK(codes_of(world, 3) == std::vector<int>{ESTALE});
        CHECK(codes_of(world, 0).empty());
        CHECK(world.all_joined());
    }
    SECTION("the root hears too few, and they stay members") {
        for (std::size_t i = 1; i < 4; ++i) world.crash(i);
        world.run_until(world.now() + options.member.rules.timeout + 3 * options.member.grace);
        CHECK(codes_of(world, 0) == std::vector<int>{ENOLINK});
        CHECK(world.member(0).view()->size() == 4);
    }
    SECTION("the store is away while a member is to be evicted") {
        world.break_store(world.now() + 20s);
        const Instant began = world.now();
        world.crash(3);
        world.run_until(began + options.member.watchdog());
        REQUIRE_FALSE(codes_of(world, 0).empty());
        CHECK(codes_of(world, 0).front() == ENOLINK);
    }
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a member that gets no start is evicted, and its call ends in time", "[eh]") {
    EpochWorldOptions options = quick_world(3);
    options.is_shared = false;
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 3, 10ms);
    world.run_until(world.now() + 300ms);
    world.block(0, 2, world.now() + 20s);
    const std::size_t before = world.answers(2).size();
    world.run_until(world.now() + options.member.watchdog() + 100ms);
    REQUIRE(world.answers(2).size() == before + 1);
    CHECK(world.answers(2).back().error().os_errno == ETIMEDOUT);
    const auto evicted = std::ranges::find(world.events(), EventKind::kEvicts,
                                           [](const auto& seen) { return seen.event.kind; });
    REQUIRE(evicted != world.events().end());
    CHECK(evicted->event.name == "m2");
    CHECK(evicted->event.reason == EvictedFor::kNoStart);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: of two contributions for one round the first one counts", "[eh]") {
    EpochWorld world(quick_world(3));
    world.begin_joined();
    run_all(world, 3, 10ms);
    world.run_until(world.now() + 105ms);
    const auto round_of = [&] { return static_cast<std::uint32_t>(world.laws().newest() + 1); };
    // m1's for the present round, made up, then its own.
    world.inject(0, {.name = "m1", .address = "a1"},
                 {.view = 1,
                  .round = round_of(),
                  .incarnation = 1,
                  .body = Ready{.count = 1, .data = std::vector<std::byte>(3)}});
    world.run_until(world.now() + 100ms);
    CHECK(world.count(EventKind::kOtherBytes) == 1);
}

TEST_CASE("eh peers: a root that relays for nobody is idle after the time for members is over",
          "[eh]") {
    EpochWorldOptions options = quick_world(1);
    options.is_shared = false;
    options.member.expect = 3;
    options.member.bootstrap_timeout = 1s;
    EpochWorld world(options);
    run_all(world, 1, 10ms);
    world.run_until(world.now() + 300ms);
    REQUIRE(world.member(0).is_root());
    world.leave(0);
    // A deadline that stays behind would stop the time of this world.
    world.run_until(world.now() + 5s);
    CHECK(world.member(0).is_root());
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a broken link within the tree costs a place, not a member", "[eh]") {
    EpochWorld world(quick_world(7));
    world.begin_joined();
    run_all(world, 7, 10ms);
    world.run_until(world.now() + 100ms);
    // Position 3 cannot reach its parent, position 1.
    world.block(3, 1, world.now() + 1min);
    const EpochNumber last = world.laws().newest();
    CHECK(world.run_until_true(world.now() + 2s, [&] { return world.laws().newest() > last + 5; }));
    CHECK(world.count(EventKind::kEvicts) == 0);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: members with other rules are refused", "[eh]") {
    MemberOptions options;
    options.root = {.name = "a", .address = "a"};
    Member root(options, {.name = "a", .address = "a"}, 1, Instant{1s});
    View view{.number = 1, .epoch_low = 1, .epoch_high = 1000};
    view.roster = {{.name = "a", .incarnation = 1, .address = "a", .joined = 1}};
    root.seat(std::make_shared<const CommittedView>(view), Instant{1s});
    (void)root.take_effects();

    root.on_message({.name = "b", .address = "b"},
                    {.incarnation = 5, .body = Join{.address = "b", .rules = {.hash = 99}}},
                    Instant{1s});

    bool is_refused = false;
    for (const Effect& effect : root.take_effects()) {
        const auto* const sent = std::get_if<Send>(&effect);
        if (sent != nullptr && std::holds_alternative<Refuse>(sent->message.body))
            is_refused = true;
    }
    CHECK(is_refused);
}

TEST_CASE("eh peers: each view says by which rules its members go", "[eh]") {
    EpochWorldOptions options = quick_world(4);
    options.member.rules_hash = 7;
    EpochWorld world(options);
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 500ms);
    world.crash(0);
    world.run_until(world.now() + 1s);
    REQUIRE(world.count(EventKind::kTakesOver) > 0);
    for (const ViewHandle& view : world.laws().history()) CHECK(view->view().rules_hash == 7);
}

TEST_CASE("eh peers: messages that make no sense change nothing", "[eh]") {
    EpochWorld world(quick_world(7));
    world.begin_joined();
    run_all(world, 7, 50ms);
    world.run_until(world.now() + 20ms);
    REQUIRE(world.laws().newest() == 1);
    const auto message = [](ViewNumber view, Incarnation incarnation, Body body) {
        return Message{
            .view = view, .round = 2, .incarnation = incarnation, .body = std::move(body)};
    };
    const Start start{.epoch = 900, .count = 7};
    const Peer child{.name = "m3", .address = "a3"};
    const Peer stranger{.name = "x", .address = "a5"};
    world.inject(1, child, message(1, 1, start));                            // From below.
    world.inject(1, child, message(1, 2, Ready{.count = 1}));                // Another incarnation.
    world.inject(1, child, message(1, 1, Ready{.count = 2}));                // More than are below.
    world.inject(2, child, message(1, 1, Ready{.count = 1}));                // Not its child.
    world.inject(1, stranger, message(1, 1, Abort{.next_round = 9}));        // No member.
    world.inject(1, {.name = "m0", .address = "a0"}, message(0, 1, start));  // An old view.
    world.run_until(world.now() + 1s);

    CHECK(world.member(1).dropped() >= 4);
    CHECK(world.member(2).dropped() >= 1);
    CHECK(world.laws().newest() < 900);
    for (std::size_t i = 0; i < 7; ++i) CHECK(errors_in(world, i) == 0);
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: one rule decides each of these worlds", "[eh]") {
    CHECK(eh::testing::busy_member_and_dead_root() == "");
    CHECK(eh::testing::lost_answer_of_store() == "");
    CHECK(eh::testing::late_swap() == "");
    CHECK(eh::testing::start_reaches_one() == "");
}
