// Goal: the edge cases of epochs end as docs/reference/epochs.md says. Method: small worlds in
// virtual time; the laws of epochs are checked at each step.

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/epoch_calls.h"
#include "tests/eh/epoch_scenarios.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using fopd::eh::testing::errors_in;
using fopd::eh::testing::quick_world;
using fopd::eh::testing::run_all;
using sim::EpochWorld;
using sim::EpochWorldOptions;

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

TEST_CASE("eh peers: the state says whether anybody takes part, and whether anybody waits",
          "[eh]") {
    EpochWorldOptions options = quick_world(3);
    options.is_shared = false;
    EpochWorld world(options);
    const auto all_are = [&](EpochState state) {
        for (std::size_t i = 0; i < 3; ++i) {
            if (world.member(i).state() != state) return false;
        }
        return true;
    };
    CHECK(all_are(EpochState::kDetached));
    world.begin_joined();
    CHECK(all_are(EpochState::kWaiting));

    REQUIRE(world.call(1, kFirstEpoch));
    CHECK(world.member(1).state() == EpochState::kClosing);
    CHECK(world.member(2).state() == EpochState::kWaiting);
    // After half the grace the root tells the others.
    world.run_until(world.now() + 60ms);
    CHECK(all_are(EpochState::kClosing));
    REQUIRE(world.call(0, kFirstEpoch));
    REQUIRE(world.call(2, kFirstEpoch));
    world.run_until(world.now() + 10ms);
    CHECK(world.laws().newest() == 1);
    CHECK(all_are(EpochState::kWaiting));

    // The root alone has the store, and stays to admit others.
    for (std::size_t i = 3; i-- > 0;) world.leave(i);
    world.run_until(world.now() + 200ms);
    CHECK(world.member(0).state() == EpochState::kIdle);
    CHECK(world.member(1).state() == EpochState::kDetached);
    CHECK(world.member(2).state() == EpochState::kDetached);
    const std::size_t views = world.laws().history().size();
    world.run_participant(1, 10ms);
    CHECK(world.run_until_true(world.now() + 200ms, [&] { return world.laws().newest() > 1; }));
    CHECK(world.member(0).state() == EpochState::kWaiting);
    CHECK(world.laws().history().size() == views + 1);
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
    const std::size_t silent = GENERATE(1U, 2U, 3U, 4U, 5U, 6U);
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

TEST_CASE("eh peers: who is killed or hangs at any step of an epoch delays the others by a bound",
          "[eh]") {
    // The root, one that has others below it, and one that has none.
    const std::size_t lost = GENERATE(0U, 1U, 6U);
    const bool hangs = GENERATE(false, true);
    const int step = GENERATE(range(0, 14));
    CAPTURE(lost, hangs, step);
    const EpochWorldOptions options = quick_world(7);
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 7, 10ms);
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.laws().newest() > 5; }));
    // The root is ready in 10 ms, the others one or two hops of 50 us later. Their reports take as
    // long, the start again, and the acknowledgements.
    world.run_until(world.now() + 9900us + step * Duration(50us));
    const std::uint64_t epochs = world.laws().epochs();
    const Instant began = world.now();
    const Instant goes_on = began + 1500ms;
    hangs ? world.pause(lost, goes_on) : world.crash(lost);
    const Duration bound = lost == 0
                               ? 2 * options.member.root_silent + 30ms
                               : options.member.rules.timeout + 2 * options.member.grace + 30ms;
    CHECK(world.run_until_true(began + bound, [&] { return world.laws().epochs() >= epochs + 2; }));
    world.run_until(goes_on);
    if (!hangs) world.start(lost);
    CHECK(world.run_until_true(goes_on + 2s, [&] { return world.all_joined(); }));
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
    // As long as the members stay the same, nobody asks the view store.
    CHECK(world.reads() + world.swaps() == 0);
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
    const EpochWorldOptions options = quick_world(5);
    EpochWorld world(options);
    world.begin_joined();
    run_all(world, 5, 10ms);
    world.run_until(world.now() + 300ms);
    const Instant parted = world.now();
    const Instant healed = parted + 10s;
    // The root is with the minority.
    for (const std::size_t one : {0U, 1U}) {
        for (const std::size_t other : {2U, 3U, 4U}) {
            world.block(one, other, healed);
            world.block(other, one, healed);
        }
    }
    // A member calls 10 ms after its last epoch, which may have been on its way.
    world.run_until(parted + 30ms + options.member.watchdog());
    for (const std::size_t cut_off : {0U, 1U}) CHECK(errors_in(world, cut_off) > 0);
    world.run_until(parted + 5s);
    const std::size_t few = world.answers(0).size();
    const std::size_t many = world.answers(2).size();
    world.run_until(healed - 1ms);
    for (std::size_t i = few; i < world.answers(0).size(); ++i) CHECK_FALSE(world.answers(0)[i]);
    CHECK(world.answers(0).size() > few);
    CHECK(world.answers(2).size() > many + 10);

    CHECK(world.run_until_true(healed + 6s, [&] { return world.all_joined(); }));
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

TEST_CASE("eh peers: while others wait, newcomers cost one view", "[eh]") {
    constexpr std::size_t kMembers = 12;
    EpochWorld world(quick_world(kMembers));
    run_all(world, 3, 10ms);
    REQUIRE(world.run_until_true(world.now() + 2s, [&] { return world.laws().newest() > 5; }));
    // Who keeps the others waiting, for most of the timeout: the root, or another.
    const bool is_root = GENERATE(false, true);
    std::size_t slow = 0;
    while (slow < 2 && world.member(slow).is_root() != is_root) ++slow;
    REQUIRE(world.member(slow).is_root() == is_root);
    world.run_participant(slow, 900ms);
    const EpochNumber last = world.laws().newest();
    REQUIRE(
        world.run_until_true(world.now() + 3s, [&] { return world.laws().newest() > last + 1; }));

    const EpochNumber begun = world.laws().newest();
    const std::size_t views = world.laws().history().size();
    for (std::size_t i = 3; i < kMembers; ++i) {
        world.run_until(world.now() + 60ms);
        world.run_participant(i, 10ms);
    }
    CHECK(world.laws().newest() == begun);
    CHECK(world.run_until_true(world.now() + 500ms, [&] { return world.laws().newest() > begun; }));
    CHECK(world.laws().history().size() == views + 1);
    // The others are admitted as soon as nobody waits.
    CHECK(world.run_until_true(world.now() + 200ms, [&] { return world.all_joined(); }));
    CHECK(world.laws().history().size() == views + 2);
    for (std::size_t i = 0; i < kMembers; ++i) CHECK(errors_in(world, i) == 0);
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
