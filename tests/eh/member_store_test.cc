// Goal: what a member does with what it reads in the view store, when somebody has changed that by
// hand, or when the store is busy or fails at the wrong moment. Method: a single member, whose
// store answers what the test says.

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace member_store_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;

namespace {

// In a chain, the third member is told by the second one.
MemberOptions in_a_chain() {
    MemberOptions options;
    options.fanout = 1;
    return options;
}

// A view 1 that the root has not made: nobody else is in it.
View lie_of_four() {
    View lie = view_of_three(1);
    const RosterEntry invented{.name = "x", .incarnation = 5, .address = "x", .joined = 1};
    lie.roster.insert(lie.roster.begin() + 1, invented);
    return lie;
}

// The view in which the third member is, after it has heard what the second one has told it.
View heard_by_third(const MemberOptions& options, const Seen& told, Instant now) {
    Member third = seated(options, kThird, view_of_three(1));
    for (const Effect& effect : told.effects) {
        const auto* const send = std::get_if<Send>(&effect);
        if (send != nullptr && send->to.name == kThird.name)
            third.on_message(kOther, send->message, now);
    }
    return third.view()->view();
}

}  // namespace

TEST_CASE("eh member: in a store without members a daemon looks for those that run", "[eh]") {
    MemberOptions options;
    options.others = {kRoot, kOther, kThird};
    // All members have left; or somebody has emptied the view, or deleted it.
    const bool is_empty = GENERATE(true, false);
    const bool has_member = GENERATE(true, false);
    CAPTURE(is_empty, has_member);
    ViewHandle stored;
    if (is_empty) stored = committed({.number = 7, .epoch_low = 1, .epoch_high = 1000});
    Member member = joining(options, kRoot);
    (void)member.take_effects();
    member.on_view_read(stored, kNow);
    const Seen asked(member);
    CHECK(asked.find<SwapStore>() == nullptr);
    CHECK(asked.sent<Join>(kOther.name) != nullptr);
    CHECK(asked.sent<Join>(kThird.name) != nullptr);

    // The root has the request to join, or the other is in no view either.
    member.on_message(kOther, as_member(0, 5, has_member ? Body(Beat{}) : Body(Redirect{})),
                      kNow + 1ms);
    const Instant later = kNow + options.grace;
    member.on_time(later);
    if (Seen(member).find<ReadStore>() != nullptr) member.on_view_read(stored, later);
    const Seen seen(member);
    CHECK((seen.find<SwapStore>() == nullptr) == has_member);
    if (seen.find<SwapStore>() != nullptr)
        CHECK(seen.find<SwapStore>()->expected == (is_empty ? 7U : 0U));
}

TEST_CASE("eh member: a member that was found and has ended holds a daemon up for root_silent",
          "[eh]") {
    MemberOptions options;
    options.others = {kRoot, kOther, kThird};
    const ViewHandle stored = committed({.number = 7, .epoch_low = 1, .epoch_high = 1000});
    Member member = joining(options, kRoot);
    member.on_view_read(stored, kNow);
    (void)member.take_effects();
    // It was the last one, and leaves.
    Body answer = Beat{};
    if (GENERATE(false, true)) answer = Redirect{.root = kThird.name, .root_address = "c"};
    member.on_message(kOther, as_member(6, 5, answer), kNow);

    Instant now = kNow;
    bool is_made = false;
    while (!is_made && now < kNow + 10s) {
        const Seen seen(member);
        is_made = seen.find<SwapStore>() != nullptr;
        if (is_made) continue;
        if (seen.find<ReadStore>() != nullptr) {
            member.on_view_read(stored, now);
        } else {
            now += options.grace / 4;
            member.on_time(now);
        }
    }
    CHECK(is_made);
    CHECK(now >= kNow + options.root_silent);
    CHECK(now <= kNow + options.root_silent + 3 * options.grace);
}

TEST_CASE("eh member: one that believed a lie passes the view of the store on as it is", "[eh]") {
    const MemberOptions options = in_a_chain();
    // The invented member is before it, and would be the first to replace the root.
    const Instant silent = kNow + options.root_silent + options.grace / 2;
    Member member = seated(options, kOther, lie_of_four());
    member.on_time(silent);
    REQUIRE(Seen(member).find<ReadStore>() != nullptr);

    SECTION("it learns of a view that another root has made") {
        member.on_view_read(committed(view_of_three(2)), silent);
        REQUIRE(member.view_number() == 2);
        CHECK(heard_by_third(options, Seen(member), silent) == view_of_three(2));
    }
    SECTION("it becomes root") {
        member.on_view_read(committed(view_of_three(1)), silent);
        const PromiseAck ack{.is_member = true, .address = kThird.address};
        member.on_message(kThird, as_member(1, 5, ack), silent);
        (void)member.take_effects();
        member.on_time(silent + options.grace);
        const Seen seen(member);
        REQUIRE(seen.find<SwapStore>() != nullptr);
        const View written = seen.find<SwapStore>()->next->view();
        REQUIRE(written.roster.size() == 2);
        member.on_view_swapped(Swapped::kYes, silent + options.grace);
        REQUIRE(member.is_root());
        CHECK(heard_by_third(options, Seen(member), silent + options.grace) == written);
    }
}

TEST_CASE("eh member: the next root passes the last one's difference on", "[eh]") {
    const MemberOptions options = in_a_chain();
    View next = view_of_three(2);
    next.roster.erase(next.roster.begin());
    const auto difference = eh::difference(view_of_three(1), next);
    REQUIRE(difference.has_value());
    Member member = seated(options, kOther, view_of_three(1));
    member.on_message(kRoot, as_member(1, 5, ViewNews{.difference = *difference}), kNow);
    REQUIRE(Seen(member).find<ReadStore>() != nullptr);
    // Or a liar has invented it, and the store has another one.
    const bool is_true = GENERATE(true, false);
    CAPTURE(is_true);
    if (!is_true) next.epoch_high += 1;
    member.on_view_read(committed(next), kNow);
    REQUIRE(member.is_root());
    const Seen seen(member);
    CHECK((seen.sent<ViewNews>(kThird.name) != nullptr) == is_true);
    CHECK(heard_by_third(options, seen, kNow) == next);
}

// -- the root hands over, and may end before anybody asks it again --

namespace {

// The second member is root after the first one has left.
View handed_over() {
    View next = view_of_three(2);
    next.roster.erase(next.roster.begin());
    return next;
}

// How the root tells that: with the view, or, if that is long, without it.
Body told_by_root(bool has_view) {
    if (has_view) return ViewNews{.difference = *difference(view_of_three(1), handed_over())};
    return Nack{.number = 2, .root = kOther.name, .root_address = kOther.address};
}

Message of_leaving_root(Body body) {
    return {.view = 1, .round = 5, .incarnation = 5, .body = std::move(body)};
}

bool reads(Member& member) {
    return Seen(member).find<ReadStore>() != nullptr;
}

const Error kStoreFails{.code = Errc::kTimedOut, .context = "the test's store fails"};

}  // namespace

TEST_CASE("eh member: a handover that is heard while the store is busy is not missed", "[eh]") {
    const MemberOptions options;
    const bool has_view = GENERATE(true, false);
    const bool fails = GENERATE(true, false);
    CAPTURE(has_view, fails);
    Member member = seated(options, kOther, view_of_three(1));
    const Instant now = kNow + options.root_silent;
    member.on_time(now);
    REQUIRE(reads(member));
    member.on_message(kRoot, of_leaving_root(told_by_root(has_view)), now);
    CHECK_FALSE(reads(member));

    // That read fails, or was answered before the root wrote the view.
    if (fails) {
        member.on_view_read(std::unexpected(kStoreFails), now + 1ms);
    } else {
        member.on_view_read(committed(view_of_three(1)), now + 1ms);
    }
    REQUIRE(reads(member));
    member.on_view_read(committed(handed_over()), now + 2ms);
    CHECK(member.is_root());
    CHECK(member.view_number() == 2);
}

TEST_CASE("eh member: a store that fails during a handover is read again soon, not for ever",
          "[eh]") {
    const MemberOptions options;
    const bool has_view = GENERATE(true, false);
    // Or it answers, and the handover was a lie.
    const bool fails = GENERATE(true, false);
    const int works_from = GENERATE(2, 4, 1000);
    CAPTURE(has_view, fails, works_from);
    Member member = seated(options, kOther, view_of_three(1));
    Instant now = kNow;
    member.on_message(kRoot, of_leaving_root(told_by_root(has_view)), now);
    int count = 0;
    Instant last = kNow;
    // The root is alive all the time, if it has not left.
    const Instant end = kNow + 3 * options.root_silent;
    while (now < end && !member.is_root()) {
        if (reads(member)) {
            ++count;
            last = now;
            Result<ViewHandle> stored = committed(view_of_three(1));
            if (fails) stored = std::unexpected(kStoreFails);
            if (count >= works_from) stored = committed(handed_over());
            member.on_view_read(stored, now);
            continue;
        }
        now = std::max(now + 1ms, std::min(member.next_deadline(), now + options.grace));
        member.on_message(kRoot, as_member(1, 5, Beat{}), now);
        member.on_time(now);
    }
    CHECK(member.is_root() == (works_from < 1000));
    CHECK(count <= 10);
    if (member.is_root()) {
        CHECK(count == works_from);
        CHECK(now <= kNow + works_from * options.grace);
    } else {
        CHECK(count >= 4);
        CHECK(last < kNow + options.root_silent);
    }
}

}  // namespace member_store_test
