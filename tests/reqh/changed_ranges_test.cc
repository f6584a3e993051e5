// Goal: what was lost and comes again gives way to what others have changed since, and only to
// that, however much there is to remember.
#include "reqh/changed_ranges.h"

#include <vector>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::reqh {
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

// The record of the object says that it was changed in incarnation `changed_in`.
ChangedRanges::Change change(const ChangedRanges::Writer& who, std::uint64_t offset,
                             std::uint64_t length, std::uint32_t changed_in = kBefore,
                             store::Fid fid = kFid) {
    return {.fid = fid,
            .range = {.offset = offset, .length = length},
            .writer = who,
            .object_changed_in = changed_in};
}

}  // namespace

TEST_CASE("reqh changed ranges: what nobody has changed since may be written again", "[reqh]") {
    const ChangedRanges ranges(kLife);

    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10, kBefore - 1), kBefore));
    // An older program's record says nothing, and cannot be newer than the last life of the log.
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 10, 0), kBefore));
}

TEST_CASE("reqh changed ranges: a change of an incarnation in between is newer", "[reqh]") {
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

TEST_CASE("reqh changed ranges: what others have changed is newer, byte by byte", "[reqh]") {
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

TEST_CASE("reqh changed ranges: what two have changed is newer than what either has lost",
          "[reqh]") {
    ChangedRanges ranges(kLife);
    ranges.add(change(kBob, 0, 10));
    ranges.add(change(kAnn, 5, 10, kNow));

    REQUIRE(ranges.may_be_newer(change(kAnn, 5, 5, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kBob, 5, 5, kNow), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 10, 5, kNow), kBefore));
    REQUIRE_FALSE(ranges.may_be_newer(change(kBob, 0, 5, kNow), kBefore));
}

TEST_CASE("reqh changed ranges: what is cut off is changed to the end of all objects", "[reqh]") {
    ChangedRanges ranges(kLife);
    ranges.add(change(kBob, 1000, fop::kOffsetMax - 1000));

    REQUIRE_FALSE(ranges.may_be_newer(change(kAnn, 0, 1000, kNow), kBefore));
    REQUIRE(ranges.may_be_newer(change(kAnn, 1ULL << 50, 1, kNow), kBefore));
}

TEST_CASE("reqh changed ranges: neighbours of one writer are one", "[reqh]") {
    ChangedRanges ranges(kLife);
    for (std::uint64_t i = 0; i < 1000; ++i) ranges.add(change(kAnn, i * 10, 10, kNow));
    REQUIRE(ranges.size() == 2);
    for (std::uint64_t i = 0; i < 1000; ++i) ranges.add(change(kBob, 20'000 - i * 10, 10, kNow));
    REQUIRE(ranges.size() == 3);
    ranges.forget(kFid);
    REQUIRE(ranges.size() == 0);
}

TEST_CASE("reqh changed ranges: of too many ranges the whole object was changed by others",
          "[reqh]") {
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

TEST_CASE("reqh changed ranges: the object that was not changed for longest is forgotten first",
          "[reqh]") {
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
TEST_CASE("reqh changed ranges: it says of each byte what was done to it", "[reqh]") {
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
            if (step == 0) made.object_changed_in = kBefore;
            ranges.add(made);
            for (std::uint64_t i = offset; i < offset + length; ++i) {
                whose[i] = whose[i] == 0 || whose[i] == who ? who : 4;
            }
            REQUIRE(ranges.size() <= 201);
        }
    }
}

}  // namespace fopd::reqh
