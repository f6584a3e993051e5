// Goal: who takes part is in the views and nowhere else: each is told once, its members go by its
// rules, and a store that fails changes neither. Method: small worlds in virtual time; the laws of
// epochs are checked at each step.

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <variant>
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

TEST_CASE("eh peers: a member that is gone is told a view a few times, not without end", "[eh]") {
    EpochWorld world(quick_world(4));
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 500ms);
    world.stop_participants();
    world.run_until(world.now() + 4s);
    REQUIRE(world.member(0).view()->size() == 4);
    const auto told = [&] { return world.messages("view_news") + world.messages("view_piece"); };
    const std::uint64_t before = told();

    world.crash(3);
    world.leave(2);
    world.run_until(world.now() + 1min);

    CHECK(world.member(0).view()->size() == 3);
    CHECK(told() > before + 2);
    CHECK(told() <= before + 10);
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

TEST_CASE("eh peers: without the store no number is used beyond the root's block", "[eh]") {
    EpochWorldOptions options = quick_world(4);
    options.member.block = 400;
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 4, 10ms);
    // Before the root wants a view with more epoch numbers.
    REQUIRE(world.run_until_true(world.now() + 10s, [&] { return world.laws().newest() > 250; }));
    const Instant healed = world.now() + 10s;
    world.break_store(healed);
    REQUIRE(world.run_until_true(world.now() + 3s, [&] { return world.laws().newest() == 400; }));
    for (std::size_t i = 0; i < 4; ++i) CHECK(errors_in(world, i) == 0);
    // Each calls within 10 ms, and hears an error.
    world.run_until(world.now() + 30ms + options.member.watchdog());
    for (std::size_t i = 0; i < 4; ++i) CHECK(errors_in(world, i) > 0);
    REQUIRE_FALSE(world.answers(0).back());
    CHECK(world.answers(0).back().error().os_errno == ENOLINK);
    world.run_until(healed);
    CHECK(world.laws().newest() == 400);
    CHECK(world.count(EventKind::kEvicts) == 0);
    CHECK(world.run_until_true(healed + 6s,
                               [&] { return world.all_joined() && world.laws().newest() > 410; }));
    CHECK(world.laws().broken() == "");
}

TEST_CASE("eh peers: a store that fails for a moment delays a handover by that moment", "[eh]") {
    const EpochWorldOptions options = quick_world(5);
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 5, 10ms);
    world.run_until(world.now() + 300ms);
    const std::size_t views = world.laws().history().size();
    world.leave(0);
    REQUIRE(world.run_until_true(world.now() + 200ms,
                                 [&] { return world.laws().history().size() > views; }));
    REQUIRE(world.laws().history().back()->root().name == "m1");
    const Instant written = world.now();
    world.break_store(written + 50ms);
    // The root ends at once, as a daemon that has nobody to wait for.
    world.run_until(written + 5ms);
    world.crash(0);

    CHECK(world.run_until_true(written + options.member.root_silent / 2,
                               [&] { return world.member(1).is_root(); }));
    const EpochNumber last = world.laws().newest();
    CHECK(world.run_until_true(world.now() + 100ms, [&] { return world.laws().newest() > last; }));
    CHECK(world.count(EventKind::kTakesOver) == 0);
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
