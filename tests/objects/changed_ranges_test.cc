// Goal: what was lost and comes again gives way to what others have changed since, and only to
// that, however much there is to remember.
#include "objects/changed_ranges.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::objects {
namespace {

constexpr std::uint64_t kNow = 7;
constexpr std::uint64_t kBefore = 6;  // The incarnation that has lost something.
constexpr ChangedRanges::Life kLife{.incarnation = kNow, .first_known = 3};
constexpr store::Fid kFid{.high = 1, .low = 1};

ChangedRanges::Writer writer(std::uint8_t number) {
    ChangedRanges::Writer writer;
    writer.bytes.fill(static_cast<std::byte>(number));
    return writer;
}
const ChangedRanges::Writer kAnn = writer(1);
const ChangedRanges::Writer kBob = writer(2);
const ChangedRanges::Writer kEve = writer(9);

// The record of the object says that it was changed in incarnation `changed_in`, by Eve.
ChangedRanges::Change change(const ChangedRanges::Writer& who, std::uint64_t offset,
                             std::uint64_t length, std::uint32_t changed_in = kBefore,
                             store::Fid fid = kFid) {
    return {.fid = fid,
            .range = {.offset = offset, .length = length},
            .writer = who,
            .before = {.incarnation = changed_in, .who = kEve}};
}

}  // namespace

TEST_CASE("objects changed ranges: a range without later changes may be written again",
          "[objects]") {
    const ChangedRanges ranges(kLife);

    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10, kBefore - 1), kBefore));
    // An older program's record says nothing, and cannot be newer than the last life of the log.
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10, 0), kBefore));
}

TEST_CASE("objects changed ranges: a change of an incarnation in between is newer", "[objects]") {
    const ChangedRanges ranges(kLife);

    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 10, kBefore), kBefore - 1));
    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 10, 0), kBefore - 1));
    // In this one, and nobody remembers by whom.
    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 10, kNow), kBefore));
    // It is lost nowhere.
    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 10), kNow));
    // Nobody knows what that one has lost.
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10, 2), 3));
    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 10, 2), 2));
}

TEST_CASE("objects changed ranges: what only its writer has changed since may be written again",
          "[objects]") {
    ChangedRanges ranges(kLife);
    auto again = change(kAnn, 0, 10, kBefore);
    again.before = {.incarnation = kBefore, .others_in = 3, .who = kAnn};

    REQUIRE_FALSE(ranges.may_be_newer(again, 3));
    again.writer = kBob;
    REQUIRE(ranges.may_be_newer(again, 3));
    REQUIRE_FALSE(ranges.may_be_newer(again, kBefore));

    // It is so while it writes again, too, and when that is forgotten.
    again.writer = kAnn;
    ranges.add(again);
    again.before = ranges.last_writer(again.before, kAnn);
    REQUIRE_FALSE(ranges.may_be_newer(again, 3));
    ranges.forget(kFid);
    REQUIRE_FALSE(ranges.may_be_newer(again, 3));
    // Until somebody else comes.
    again.before = ranges.last_writer(again.before, kBob);
    REQUIRE(ranges.may_be_newer(again, kBefore));
}

// Method: lives of a log that end in order or by a crash, of which a record may be lost with all
// behind it; a table of who has changed the object when.
TEST_CASE("objects changed ranges: a record says when anybody else has changed the object last",
          "[objects]") {
    struct State {
        store::LastWriter record{};
        std::array<std::uint32_t, 4> last{};  // Of each writer; of the first only what is unknown.
    };
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        core::Random random(seed);
        State now;
        for (std::uint32_t incarnation = 3; incarnation < 12; ++incarnation) {
            const ChangedRanges::Life life{.incarnation = incarnation, .first_known = 1};
            ChangedRanges ranges(life);
            const bool is_changed = now.record.incarnation != 0;
            for (std::uint8_t who = 1; who <= 3 && is_changed; ++who) {
                std::uint32_t by_others = 0;
                for (std::uint8_t other = 0; other <= 3; ++other) {
                    if (other != who) by_others = std::max(by_others, now.last[other]);
                }
                for (std::uint32_t lost_in = 1; lost_in < incarnation; ++lost_in) {
                    const ChangedRanges::Change asked{.fid = kFid,
                                                      .range = {.offset = 0, .length = 1},
                                                      .writer = writer(who),
                                                      .before = now.record};
                    CAPTURE(seed, incarnation, who, lost_in, by_others);
                    REQUIRE(ranges.may_be_newer(asked, lost_in) == (by_others > lost_in));
                }
            }
            std::vector<State> states{now};
            for (std::uint64_t changes = random.below(4); changes > 0; --changes) {
                const auto who = static_cast<std::uint8_t>(1 + random.below(3));
                if (now.record.incarnation == 0) now.last[0] = incarnation - 1;
                now.record = ranges.last_writer(now.record, writer(who));
                now.last[who] = incarnation;
                states.push_back(now);
            }
            now = states[random.below(states.size())];
        }
    }
}

TEST_CASE("objects changed ranges: what others have changed is newer, byte by byte", "[objects]") {
    ChangedRanges ranges(kLife);
    ranges.add(change(kBob, 100, 50));

    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 100, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 101, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kAnn, 120, 1, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kAnn, 149, 10, kNow), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 150, 10, kNow), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kBob, 120, 10, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kBob, 120, 10, kNow), kBefore - 1));
}

TEST_CASE("objects changed ranges: what two have changed is newer than what either has lost",
          "[objects]") {
    ChangedRanges ranges(kLife);
    ranges.add(change(kBob, 0, 10));
    ranges.add(change(kAnn, 5, 10, kNow));

    REQUIRE(ranges.may_be_newer(change(kAnn, 5, 5, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kBob, 5, 5, kNow), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 10, 5, kNow), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kBob, 0, 5, kNow), kBefore));
}

TEST_CASE("objects changed ranges: a truncate changes up to the largest end of an object",
          "[objects]") {
    ChangedRanges ranges(kLife);
    ranges.add(change(kBob, 1000, fop::kOffsetMax - 1000));

    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 1000, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kAnn, 1ULL << 50, 1, kNow), kBefore));
}

TEST_CASE("objects changed ranges: neighbours of one writer are one", "[objects]") {
    ChangedRanges ranges(kLife);
    for (std::uint64_t i = 0; i < 1000; ++i) ranges.add(change(kAnn, i * 10, 10, kNow));
    REQUIRE(ranges.size() == 2);
    for (std::uint64_t i = 0; i < 1000; ++i) ranges.add(change(kBob, 20'000 - i * 10, 10, kNow));
    REQUIRE(ranges.size() == 3);
    ranges.forget(kFid);
    REQUIRE(ranges.size() == 0);
}

TEST_CASE("objects changed ranges: of too many ranges the whole object was changed by others",
          "[objects]") {
    ChangedRanges ranges(kLife, {.of_object = 4, .in_all = 100});
    for (std::uint64_t i = 0; i < 4; ++i) ranges.add(change(kBob, i * 20, 10));
    REQUIRE_FALSE(ranges.may_be_newer(change(kBob, 20, 10, kNow), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 10, 10, kNow), kBefore));

    ranges.add(change(kBob, 200, 10, kNow));

    REQUIRE(ranges.size() == 2);
    REQUIRE(ranges.may_be_newer(change(kBob, 20, 10, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kAnn, 10, 10, kNow), kBefore));
    ranges.add(change(kBob, 300, 10, kNow));
    REQUIRE(ranges.size() == 2);
}

TEST_CASE("objects changed ranges: the object that was not changed for longest is forgotten first",
          "[objects]") {
    ChangedRanges ranges(kLife, {.of_object = 3, .in_all = 6});
    const auto fid = [](std::uint64_t low) { return store::Fid{.high = 1, .low = low}; };
    for (std::uint64_t i = 1; i <= 3; ++i) ranges.add(change(kAnn, 0, 10, kBefore, fid(i)));
    ranges.add(change(kAnn, 10, 10, kNow, fid(1)));
    REQUIRE(ranges.size() == 6);

    ranges.add(change(kAnn, 0, 10, kBefore, fid(4)));

    REQUIRE(ranges.size() == 6);
    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 10, kNow, fid(2)), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10, kNow, fid(1)), kBefore));
    // Once it was forgotten it stays so.
    ranges.add(change(kAnn, 0, 10, kNow, fid(2)));
    REQUIRE(ranges.may_be_newer(change(kAnn, 0, 10, kNow, fid(2)), kBefore));
}

// The class says the same as a table of bytes; within its limits nothing more.
TEST_CASE("objects changed ranges: it says of each byte what was done to it", "[objects]") {
    constexpr std::uint64_t kBytes = 64;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        core::Random random(seed);
        const bool is_small = seed % 2 == 0;
        ChangedRanges ranges(kLife, {.of_object = is_small ? 5UL : 100UL, .in_all = 200});
        std::vector<std::uint8_t> whose(kBytes);  // 0: nobody's; 4: more than one's.
        for (int step = 0; step < 200; ++step) {
            const std::uint64_t offset = random.below(kBytes);
            const std::uint64_t length = 1 + random.below(std::min<std::uint64_t>(
                                                 kBytes - offset, step % 9 == 0 ? kBytes : 6));
            const auto who = static_cast<std::uint8_t>(1 + random.below(3));
            const auto asked = change(writer(who), offset, length, kNow);
            if (step % 3 > 0) {
                bool others = false;
                for (std::uint64_t i = offset; i < offset + length; ++i) {
                    others = others || (whose[i] != 0 && whose[i] != who);
                }
                const bool is_newer = ranges.may_be_newer(asked, kBefore);
                const bool is_known = step > 2;  // Else it is not changed yet.
                CAPTURE(seed, step, offset, length, others, is_newer);
                REQUIRE((is_newer || !others));
                REQUIRE((!is_newer || others || is_small || !is_known));
                continue;
            }
            auto made = asked;
            if (step == 0) made.before.incarnation = kBefore;
            ranges.add(made);
            for (std::uint64_t i = offset; i < offset + length; ++i) {
                whose[i] = whose[i] == 0 || whose[i] == who ? who : 4;
            }
            REQUIRE(ranges.size() <= 201);
        }
    }
}

}  // namespace fopd::objects
