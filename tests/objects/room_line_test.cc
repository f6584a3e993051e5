// Goal: who waits for room on a disk gets it in the order of arrival, and stops nobody without end.
// Method: the line by itself, with a time that the test moves.

#include "objects/room_line.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "objects/pool_quota.h"
#include "tests/catch.h"

using namespace fopd;
using objects::RoomLine;

namespace {

constexpr std::uint64_t kWanted = 100;

RoomLine::Key key_of(std::uint64_t number) {
    return {.fid = {.high = 1, .low = number}};
}

RoomLine::Key recall_of(std::uint64_t number) {
    return {.fid = {.high = 1, .low = number}, .is_recall = true};
}

class Line {
public:
    // Without `who` each place is of an owner of its own.
    void wait(const RoomLine::Key& key, std::uint64_t blocks = kWanted, std::string_view who = {},
              Instant deadline = kNever) {
        const std::string own = "owner of " + std::to_string(key.fid.low);
        line.wait({.key = key,
                   .owner = &use.owner({.pool = 1, .owner = who.empty() ? own : who}),
                   .blocks = blocks,
                   .deadline = deadline},
                  now);
    }
    void recall(std::uint64_t number, std::uint64_t blocks = kWanted) {
        line.wait({.key = recall_of(number), .blocks = blocks, .deadline = kNever}, now);
    }
    std::uint64_t before(const RoomLine::Key& key) { return line.wanted_before(key, now); }
    // For which recall a recall without a place leaves room; 0: for none.
    std::uint64_t first_recall() {
        const auto first = line.first_recall_before(recall_of(1'000'000), now);
        return first ? first->key.fid.low : 0;
    }
    void pass(Duration span) { now = after(now, span); }
    // So long that places get force, while these come again.
    void pass_grace(std::uint64_t first, std::uint64_t last) {
        for (Duration passed{0}; passed < RoomLine::kGrace; passed += 1s) {
            pass(1s);
            for (std::uint64_t each = first; each <= last; ++each) wait(key_of(each));
        }
    }

    objects::DiskUse use{store::PoolShares{}};
    RoomLine line;
    Instant now{Duration{100s}};
};

}  // namespace

TEST_CASE("objects room line: who comes later leaves the room of those who have waited",
          "[objects]") {
    Line line;
    line.wait(key_of(1));
    // Who waits for a moment stops nobody.
    line.pass(RoomLine::kGrace / 4);
    line.wait(key_of(2));
    CHECK(line.before(key_of(3)) == 0);
    line.pass_grace(1, 2);
    CHECK(line.before(key_of(1)) == 0);
    CHECK(line.before(key_of(2)) == kWanted);
    CHECK(line.before(key_of(3)) == 2 * kWanted);
    // It does not change its place.
    line.wait(key_of(1), 30);
    CHECK(line.before(key_of(2)) == 30);
    line.line.leave(key_of(1));
    CHECK(line.before(key_of(2)) == 0);
    CHECK(line.before(key_of(3)) == kWanted);
}

TEST_CASE("objects room line: who goes away has no place", "[objects]") {
    Line line;
    for (std::uint64_t each = 1; each <= 4; ++each) line.wait(key_of(each));
    line.pass_grace(1, 4);
    REQUIRE(line.before(key_of(9)) == 4 * kWanted);
    // It is removed.
    line.line.forget(key_of(1).fid);
    CHECK(line.before(key_of(9)) == 3 * kWanted);
    // Its deadline passes.
    line.wait(key_of(2), kWanted, {}, after(line.now, 1s));
    line.pass(1s);
    CHECK(line.before(key_of(9)) == 2 * kWanted);
    // It does not come again: its client has cancelled it, or has gone.
    line.wait(key_of(3));
    line.pass(RoomLine::kStays - 1s);
    CHECK(line.before(key_of(9)) == kWanted);
    line.pass(1s);
    CHECK(line.before(key_of(9)) == 0);
    CHECK(line.line.count(line.now) == 0);
    // Who comes back begins at the end.
    line.wait(key_of(5));
    line.wait(key_of(1));
    line.pass_grace(1, 5);
    CHECK(line.before(key_of(5)) == 0);
}

TEST_CASE("objects room line: the number of places is bounded, for each owner too", "[objects]") {
    constexpr std::uint64_t kMax = RoomLine::kPlacesMax;
    Line line;
    for (std::uint64_t each = 1; each <= kMax; ++each) line.wait(key_of(each), kWanted, "alice");
    CHECK(line.line.count(line.now) == kMax / 2);
    for (std::uint64_t each = 1; each <= kMax; ++each) line.wait(key_of(1000 + each), 1, "bob");
    CHECK(line.line.count(line.now) == kMax / 2 + kMax / 4);
    for (std::uint64_t owner = 0; owner < 40; ++owner) {
        const std::string who = "owner" + std::to_string(owner);
        for (std::uint64_t each = 1; each <= kMax; ++each) {
            line.wait(key_of(2000 + owner * kMax + each), 1, who);
        }
    }
    CHECK(line.line.count(line.now) <= kMax);
    CHECK(line.line.count(line.now) > kMax - 40);
}

TEST_CASE("objects room line: an upload leaves the room of those who had waited when it began",
          "[objects]") {
    Line line;
    line.wait(key_of(1));
    const Instant early = after(line.now, 1s);
    line.pass_grace(1, 1);
    line.pass(1s);
    line.wait(key_of(1));
    CHECK(line.line.wanted_since(early, line.now) == 0);
    CHECK(line.line.wanted_since(line.now, line.now) == kWanted);
}

TEST_CASE("objects room line: a place for which nothing gets on loses its turn for some time",
          "[objects]") {
    Line line;
    line.wait(key_of(1));
    line.wait(key_of(2));
    line.pass_grace(1, 2);
    const auto pass_turn = [&line](std::int64_t available, Duration span) {
        for (Duration passed{0}; passed < span; passed += 1s) {
            line.pass(1s);
            line.wait(key_of(1));
            line.wait(key_of(2));
            line.line.observe(available, line.now);
        }
    };
    pass_turn(10, RoomLine::kTurn - 5s);
    CHECK(line.before(key_of(2)) == kWanted);
    // More room is progress, and so is an upload that gets on.
    pass_turn(11, RoomLine::kTurn - 5s);
    line.line.note_sent(200'000, line.now);
    pass_turn(5, RoomLine::kTurn - 5s);
    CHECK(line.before(key_of(2)) == kWanted);
    pass_turn(11, 10s);
    CHECK(line.before(key_of(2)) == 0);
    CHECK(line.before(key_of(3)) == kWanted);
    // The next one has a turn of its own.
    pass_turn(11, RoomLine::kTurn - 20s);
    CHECK(line.before(key_of(3)) == kWanted);
    pass_turn(11, 40s);
    CHECK(line.before(key_of(3)) == 0);
    pass_turn(11, RoomLine::kYields - 10min);
    CHECK(line.before(key_of(2)) == kWanted);
}

TEST_CASE("objects room line: an owner delays others no more with many places than with one",
          "[objects]") {
    constexpr std::uint64_t kMany = 100;
    constexpr std::uint64_t kOthers = 1000;
    Line line;
    const auto pass = [&line](Duration span) {
        for (Duration passed{0}; passed < span; passed += 2s) {
            line.pass(2s);
            for (std::uint64_t each = 1; each <= kMany; ++each) {
                line.wait(key_of(each), 10 * kWanted - each, "alice");
            }
            line.wait(key_of(kOthers), kWanted, "bob");
            line.line.observe(10, line.now);
        }
    };
    pass(RoomLine::kGrace + 4s);
    CHECK(line.before(key_of(kOthers)) == 10 * kWanted - 1);
    // Alice's own come in their order, and a later request leaves the room of both owners.
    CHECK(line.before(key_of(kMany)) == 10 * kWanted - 1);
    CHECK(line.before(key_of(kOthers + 1)) == 11 * kWanted - 1);
    line.line.leave(key_of(1));
    CHECK(line.before(key_of(kOthers)) == 10 * kWanted - 2);

    // All of them have one turn together, and are behind bob's for a while.
    pass(RoomLine::kTurn + 10s);
    CHECK(line.before(key_of(kOthers)) == 0);
    CHECK(line.before(key_of(kOthers + 1)) == kWanted);
}

TEST_CASE("objects room line: recalls keep their order, and the room of one at a time is kept",
          "[objects]") {
    Line line;
    line.recall(1);
    line.recall(2);
    CHECK(line.line.count(line.now) == 2);
    line.wait(key_of(3));
    CHECK(line.first_recall() == 0);
    line.pass_grace(3, 3);
    CHECK(line.before(key_of(3)) == kWanted);
    CHECK(line.before(key_of(4)) == 2 * kWanted);
    CHECK(line.line.wanted_since(after(line.now, 1s), line.now) == 2 * kWanted);
    CHECK(line.before(recall_of(1)) == 0);
    CHECK(line.before(recall_of(2)) == 0);
    CHECK(line.before(recall_of(9)) == kWanted);
    CHECK_FALSE(line.line.first_recall_before(recall_of(1), line.now).has_value());
    CHECK(line.line.first_recall_before(recall_of(2), line.now)->key == recall_of(1));
    CHECK(line.first_recall() == 1);
    // It uses its room.
    line.line.renew(recall_of(1), 40, line.now);
    line.line.renew(recall_of(9), 40, line.now);
    CHECK(line.before(key_of(3)) == 40);
    CHECK(line.line.count(line.now) == 3);
    line.line.leave(recall_of(1));
    CHECK(line.before(key_of(3)) == kWanted);
    CHECK(line.first_recall() == 2);
    line.line.leave(recall_of(2));
    CHECK(line.before(key_of(3)) == 0);
    CHECK(line.first_recall() == 0);
}

TEST_CASE("objects room line: a recall without room loses its turn for all that want as much",
          "[objects]") {
    Line line;
    const auto pass = [&line](Duration span) {
        for (Duration passed{0}; passed < span; passed += 10s) {
            line.pass(10s);
            line.recall(1, 100);
            line.recall(2, 200);
            line.recall(3, 50);
            line.line.observe(10, line.now);
        }
    };
    pass(RoomLine::kTurn);
    CHECK(line.first_recall() == 1);
    pass(30s);
    // Only the small one may get what the large ones did not.
    CHECK(line.first_recall() == 3);
    pass(RoomLine::kTurn + 20s);
    CHECK(line.first_recall() == 0);
    CHECK(line.before(key_of(4)) == 0);
    pass(RoomLine::kYields);
    CHECK(line.first_recall() == 2);
}

TEST_CASE("objects room line: a recall whose drive stands still stops no other recall's turn",
          "[objects]") {
    Line line;
    line.recall(1);
    for (Duration passed{0}; passed < RoomLine::kTurn + 1min; passed += 10s) {
        line.pass(10s);
        line.line.renew(recall_of(1), 10, line.now);
        line.recall(2);
        line.line.observe(10, line.now);
    }
    CHECK(line.first_recall() == 2);
    CHECK(line.before(key_of(3)) == kWanted);
}

TEST_CASE("objects room line: the number of recalls is bounded, and one without a chance goes",
          "[objects]") {
    constexpr std::uint64_t kMax = RoomLine::kRecallPlacesMax;
    constexpr std::uint64_t kSmall = 10;
    Line line;
    const auto wait_all = [&line] {
        for (std::uint64_t each = 1; each <= kMax + 4; ++each) line.recall(each);
    };
    wait_all();
    line.recall(100, kSmall);
    CHECK(line.line.count(line.now) == kMax);
    for (Duration passed{0}; passed < RoomLine::kTurn + 20s; passed += 10s) {
        line.pass(10s);
        wait_all();
        line.line.observe(10, line.now);
    }
    CHECK(line.first_recall() == 0);
    // Those that want as much as the one that had its turn do not take its place.
    line.recall(100, kSmall);
    line.pass(RoomLine::kGrace);
    wait_all();
    line.recall(100, kSmall);
    CHECK(line.line.count(line.now) == kMax);
    CHECK(line.first_recall() == 100);
}

TEST_CASE("objects room line: an upload that sends a little now and then holds no turn",
          "[objects]") {
    Line line;
    line.wait(key_of(1));
    line.wait(key_of(2));
    line.pass_grace(1, 2);
    const auto pass_turn = [&line](std::uint64_t sent_blocks, Duration span) {
        for (Duration passed{0}; passed < span; passed += 1s) {
            line.pass(1s);
            line.line.note_sent(sent_blocks, line.now);
            line.wait(key_of(1));
            line.wait(key_of(2));
            line.line.observe(10, line.now);
        }
    };
    SECTION("a little") {
        pass_turn(1, RoomLine::kTurn - 20s);
        CHECK(line.before(key_of(2)) == kWanted);
        pass_turn(1, 40s);
        CHECK(line.before(key_of(2)) == 0);
    }
    SECTION("enough, but without end") {
        const auto enough = static_cast<std::uint64_t>(RoomLine::kSentPerSecondMin);
        pass_turn(enough, RoomLine::kSendingMax);
        CHECK(line.before(key_of(2)) == kWanted);
        pass_turn(enough, RoomLine::kTurn + 20s);
        CHECK(line.before(key_of(2)) == 0);
    }
}

TEST_CASE("objects room line: a little more room now and then keeps no turn", "[objects]") {
    constexpr std::uint64_t kLarge = 1000 * RoomLine::kProgressPart;
    Line line;
    line.wait(key_of(1), kLarge);
    std::int64_t available = 10;
    for (Duration passed{0}; passed < RoomLine::kGrace + RoomLine::kTurn + 20s; passed += 1s) {
        line.pass(1s);
        line.wait(key_of(1), kLarge);
        line.line.observe(++available, line.now);
    }
    CHECK(line.before(key_of(2)) == 0);
}

TEST_CASE("objects room line: a recall whose bytes arrive keeps its turn", "[objects]") {
    Line line;
    constexpr std::uint64_t kRecalled = 1000;
    line.line.wait({.key = recall_of(1), .blocks = kRecalled, .deadline = kNever}, line.now);
    line.pass(RoomLine::kGrace);
    std::uint64_t rest = kRecalled;
    for (Duration passed{0}; passed < 3 * RoomLine::kTurn; passed += 1min) {
        line.pass(1min);
        line.line.renew(recall_of(1), --rest, line.now);
        line.line.observe(10, line.now);
    }
    CHECK(line.before(key_of(2)) == rest);
}

TEST_CASE("objects room line: a place that has lost its turn is behind those that waited then",
          "[objects]") {
    Line line;
    line.wait(key_of(1));
    line.pass_grace(1, 1);
    std::int64_t available = 10;
    const auto pass_second = [&line, &available] {
        line.pass(1s);
        line.wait(key_of(1));
        line.wait(key_of(2));
        line.line.observe(available, line.now);
    };
    for (Duration passed{0}; passed < RoomLine::kTurn + 20s; passed += 1s) pass_second();
    REQUIRE(line.before(key_of(2)) == 0);
    for (Duration passed{0}; passed < RoomLine::kYields; passed += 1s) {
        ++available;
        pass_second();
    }
    CHECK(line.before(key_of(2)) == 0);
    CHECK(line.before(key_of(1)) == kWanted);
    CHECK(line.before(key_of(3)) == 2 * kWanted);
}
