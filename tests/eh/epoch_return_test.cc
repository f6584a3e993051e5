// Goal: members that were killed, paused or cut off go on together again, with numbers that only
// grow, whatever they have lost. Method: small worlds in virtual time; the laws of epochs are
// checked at each step.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/epoch_calls.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using fopd::eh::testing::errors_in;
using fopd::eh::testing::quick_world;
using fopd::eh::testing::run_all;
using sim::EpochWorld;
using sim::EpochWorldOptions;

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

TEST_CASE(
    "eh peers: two epochs after the network is healed all are in one view, however it was cut",
    "[eh]") {
    using Sides = std::array<int, 5>;  // Of each member.
    constexpr std::array kCuts{Sides{0, 0, 1, 1, 1}, Sides{0, 0, 0, 1, 1}, Sides{0, 1, 1, 1, 1},
                               Sides{0, 0, 1, 1, 2}, Sides{0, 1, 2, 3, 4}};
    const Sides sides = kCuts[GENERATE(0U, 1U, 2U, 3U, 4U)];
    const bool is_shared = GENERATE(true, false);
    // A call that fails for good, the pause after it and the next one take 2.7 s: the network is
    // healed at ten moments of that.
    const int moment = GENERATE(range(0, 10));
    CAPTURE(sides, is_shared, moment);
    EpochWorldOptions options = quick_world(5);
    options.is_shared = is_shared;
    EpochWorld world(options);
    world.begin_joined();
    // As a request scheduler that nothing keeps.
    const Duration think = options.member.rules.timeout / 2;
    run_all(world, 5, think);
    world.run_until(world.now() + 1300ms);
    const Instant parted = world.now();
    const Instant healed = parted + 10s + moment * Duration(270ms);
    for (std::size_t one = 0; one < 5; ++one) {
        for (std::size_t other = 0; other < 5; ++other) {
            if (sides[one] != sides[other]) world.block(one, other, healed);
        }
    }
    // The start of an epoch may be under way.
    world.run_until(parted + 10ms);
    std::array<std::size_t, 5> heard{};
    for (std::size_t i = 0; i < 5; ++i) heard[i] = world.answers(i).size();
    world.run_until(parted + think + options.member.watchdog() + 10ms);
    const auto goes_on = [&](std::size_t i) {
        const bool has_root = is_shared || sides[i] == sides[0];
        return has_root && std::ranges::count(sides, sides[i]) >= 3;
    };
    for (std::size_t i = 0; i < 5; ++i) CHECK((goes_on(i) || errors_in(world, i) > 0));
    world.run_until(healed);
    for (std::size_t i = 0; i < 5; ++i) {
        CAPTURE(i);
        if (goes_on(i)) {
            CHECK(world.answers(i).size() > heard[i] + 10);
            CHECK(world.answers(i).back());
            continue;
        }
        for (std::size_t at = heard[i]; at < world.answers(i).size(); ++at)
            CHECK_FALSE(world.answers(i)[at]);
    }

    const std::uint64_t epochs = world.laws().epochs();
    CHECK(world.run_until_true(healed + options.member.watchdog(),
                               [&] { return world.laws().epochs() >= epochs + 2; }));
    CHECK(world.all_joined());
    CHECK(world.laws().history().back()->participants() == 5);
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
