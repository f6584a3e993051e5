// Goal: numbers of epochs and incarnations from a liar, or from a damaged file, leave numbers for
// everybody, and whoever is refused for its number is told how to go on. Method: a single member,
// told what nobody honest would tell it.

#include <cerrno>
#include <utility>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace member_numbers_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;

namespace {

bool can_be_read(const View& view) {
    return decode_view(encode_view(view)).has_value();
}

// A member that has begun the last of all epochs, in a view that no root has made.
Member with_the_last_epoch(const MemberOptions& options) {
    View lie = view_of_three(1);
    lie.epoch_high = kEpochMax;
    Member member = seated(options, kOther, lie);
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    member.on_message(kRoot, as_member(1, 5, Start{.epoch = kEpochMax, .count = 3}), kNow);
    REQUIRE(member.newest_epoch() == kEpochMax);
    (void)member.take_effects();
    return member;
}

// It hears nothing of the root, and asks the third one for a promise. Returns when it has that.
Instant become_candidate(Member& member, const View& stored) {
    const Instant silent = kNow + MemberOptions{}.root_silent;
    member.on_time(silent);
    REQUIRE(Seen(member).find<ReadStore>() != nullptr);
    member.on_view_read(committed(stored), silent);
    REQUIRE(Seen(member).sent<Promise>(kThird.name) != nullptr);
    const PromiseAck ack{.is_member = true, .address = kThird.address};
    member.on_message(kThird, as_member(1, 5, ack), silent);
    const Instant then = silent + MemberOptions{}.grace;
    member.on_time(then);
    return then;
}

constexpr Incarnation kFar = Incarnation{1} << 50;

// The refusal of a number that a message has sent to this daemon.
const Message* refusal_in(const Seen& seen, const Peer& to) {
    const Send* const sent = seen.sent<Refuse>(to.name);
    if (sent == nullptr) return nullptr;
    const auto& refuse = std::get<Refuse>(sent->message.body);
    return refuse.reason == RefuseReason::kIncarnation ? &sent->message : nullptr;
}

}  // namespace

TEST_CASE("eh member: a root that was told of the last epoch leaves numbers for others", "[eh]") {
    const MemberOptions options;
    Member member = with_the_last_epoch(options);

    SECTION("it becomes root by a view that others have made") {
        View next = view_of_three(2);
        std::swap(next.roster[0], next.roster[1]);
        const Instant silent = kNow + options.root_silent;
        member.on_time(silent);
        REQUIRE(Seen(member).find<ReadStore>() != nullptr);
        member.on_view_read(committed(next), silent);
        REQUIRE(member.is_root());
        // It wants a block of numbers behind its newest epoch.
        REQUIRE(Seen(member).find<ReadStore>() != nullptr);
        member.on_view_read(committed(next), silent);
        const Seen seen(member);
        REQUIRE(seen.find<SwapStore>() != nullptr);
        const View& written = seen.find<SwapStore>()->next->view();
        CHECK(written.epoch_low > next.epoch_high);
        CHECK(written.epoch_high < kEpochMax / 2 + 2 * options.block);
        CHECK(can_be_read(written));
    }
    SECTION("it becomes root by promises") {
        const Instant promised = become_candidate(member, view_of_three(1));
        const Seen seen(member);
        REQUIRE(seen.find<SwapStore>() != nullptr);
        const View& written = seen.find<SwapStore>()->next->view();
        CHECK(written.epoch_high < kEpochMax / 2 + 2 * options.block);
        CHECK(written.carry.epoch == 0);
        CHECK(can_be_read(written));

        // Its own newest epoch is none of the numbers that are used from now on.
        member.on_view_swapped(Swapped::kYes, promised);
        REQUIRE(member.is_root());
        CHECK(member.newest_epoch() < written.epoch_low);
        CHECK(Seen(member).find<ReadStore>() == nullptr);
    }
}

TEST_CASE("eh member: when the numbers of epochs are used up no view is written", "[eh]") {
    const MemberOptions options;
    View last = view_of_three(1);
    last.epoch_low = kEpochMax - 1000;
    last.epoch_high = kEpochMax;

    SECTION("a root goes on with the numbers that it has") {
        Member root = seated(options, kRoot, last);
        root.on_time(kNow);
        REQUIRE(Seen(root).find<ReadStore>() != nullptr);
        root.on_view_read(committed(last), kNow);
        const Seen seen(root);
        CHECK(seen.event(EventKind::kNumbersUsedUp) != nullptr);
        CHECK(seen.find<SwapStore>() == nullptr);
        CHECK(seen.find<ReadStore>() == nullptr);

        REQUIRE(root.next_epoch(kFirstEpoch, {}, kNow));
        root.on_message(kOther, as_member(1, 5, Ready{.count = 1}), kNow);
        root.on_message(kThird, as_member(1, 5, Ready{.count = 1}), kNow);
        CHECK(root.newest_epoch() == last.epoch_low);
        CHECK(Seen(root).find<ReadStore>() == nullptr);
        root.on_time(kNow + options.back_off_max);
        CHECK(Seen(root).find<ReadStore>() != nullptr);
    }
    SECTION("a candidate does not become root") {
        Member candidate = seated(options, kOther, last);
        const Instant promised = become_candidate(candidate, last);
        const Seen seen(candidate);
        CHECK(seen.event(EventKind::kNumbersUsedUp) != nullptr);
        CHECK(seen.find<SwapStore>() == nullptr);
        CHECK(candidate.next_deadline() > promised);
    }
    SECTION("a daemon that finds no members says why it does not begin") {
        last.roster.clear();
        Member first = joining(options, kRoot);
        (void)first.take_effects();
        first.on_view_read(committed(last), kNow);
        const Seen seen(first);
        CHECK(seen.event(EventKind::kNumbersUsedUp) != nullptr);
        CHECK(seen.find<SwapStore>() == nullptr);
        REQUIRE(seen.find<Answer>() != nullptr);
        CHECK(seen.find<Answer>()->epoch.error().os_errno == EOVERFLOW);
        CHECK(first.standing() == Standing::kDetached);
    }
}

TEST_CASE("eh member: a number that no daemon can have is answered with the known one", "[eh]") {
    const Incarnation wrong = GENERATE(kFar, kIncarnationMax, kIncarnationMax + 7);
    CAPTURE(wrong);
    const MemberOptions options;
    const auto check = [&](Member& member, Body body, const Instant at) {
        member.on_message(kThird, as_member(1, wrong, std::move(body)), at);
        const Seen seen(member);
        CHECK(member.dropped() == 1);
        CHECK(seen.event(EventKind::kDropped) != nullptr);
        const Message* const refusal = refusal_in(seen, kThird);
        REQUIRE(refusal != nullptr);
        CHECK(refusal->round == static_cast<std::uint32_t>(wrong));
        CHECK(std::get<Refuse>(refusal->body).incarnation == 5);
        return seen.sent<PromiseAck>(kThird.name) == nullptr;
    };

    SECTION("a request to join") {
        Member root = seated(options, kRoot, view_of_three(1));
        CHECK(check(root, Join{.address = kThird.address}, kNow));
    }
    SECTION("a candidate, which gets no promise") {
        Member member = seated(options, kOther, view_of_three(1));
        const Instant silent = kNow + options.root_silent;
        CHECK(check(member, Promise{.address = kThird.address}, silent));
        // The next number gets one.
        member.on_message(kThird, as_member(1, 6, Promise{.address = kThird.address}), silent);
        CHECK(Seen(member).sent<PromiseAck>(kThird.name) != nullptr);
    }
    SECTION("a promise") {
        Member candidate = seated(options, kOther, view_of_three(1));
        const Instant silent = kNow + options.root_silent;
        candidate.on_time(silent);
        candidate.on_view_read(committed(view_of_three(1)), silent);
        (void)candidate.take_effects();
        CHECK(check(candidate, PromiseAck{.wants_join = true, .address = kThird.address}, silent));
        candidate.on_time(silent + options.grace);
        CHECK(Seen(candidate).find<SwapStore>() == nullptr);
    }
}

TEST_CASE("eh member: a candidate with a damaged file begins again behind the known number",
          "[eh]") {
    const MemberOptions options;
    Member candidate(options, kThird, kFar, kNow);
    REQUIRE(candidate.next_epoch(kFirstEpoch, {}, kNow));
    candidate.on_persisted(kFar + 1, kNow);
    candidate.on_view_read(committed(view_of_three(1)), kNow);
    (void)candidate.take_effects();
    const Instant silent = kNow + options.root_silent + options.grace;
    // It asks the root once more, then for promises.
    for (int i = 0; i < 2; ++i) {
        candidate.on_time(silent);
        candidate.on_view_read(committed(view_of_three(1)), silent);
    }
    const Seen asked(candidate);
    REQUIRE(asked.sent<Promise>(kOther.name) != nullptr);

    Member member = seated(options, kOther, view_of_three(1));
    member.on_message(kThird, asked.sent<Promise>(kOther.name)->message, silent);
    const Seen refused(member);
    REQUIRE(refusal_in(refused, kThird) != nullptr);
    candidate.on_message(kOther, *refusal_in(refused, kThird), silent);

    const Seen again(candidate);
    REQUIRE(again.find<Persist>() != nullptr);
    const Incarnation next = again.find<Persist>()->incarnation;
    CHECK(next > 5);
    CHECK(next < kFar / 2);
    // It begins anew: no view gets its wrong number.
    candidate.on_message(kOther, as_member(1, 5, PromiseAck{.is_member = true}), silent);
    candidate.on_time(silent + options.grace);
    CHECK(Seen(candidate).find<SwapStore>() == nullptr);
    member.on_message(kThird, as_member(1, next, Promise{.address = kThird.address}), silent);
    CHECK(Seen(member).sent<PromiseAck>(kThird.name) != nullptr);
}

TEST_CASE("eh member: whoever joins in another's name again and again leaves it to its owner",
          "[eh]") {
    MemberOptions options;
    options.root = kRoot;
    // Whether a root that knows the one incarnation of a member takes the other one.
    const auto takes = [&](Incarnation known, Message message) {
        View view = view_of_three(1);
        view.roster[1].incarnation = known;
        Member root = seated(options, kRoot, std::move(view));
        root.on_message(kOther, std::move(message), kNow);
        return Seen(root).sent<Beat>(kOther.name) != nullptr;
    };
    Incarnation known = 5;
    for (int lies = 0; lies < 100; ++lies) {
        // The highest number that is taken.
        Incarnation taken = known;
        Incarnation refused = kIncarnationMax;
        while (refused - taken > 1) {
            const Incarnation middle = taken + (refused - taken) / 2;
            const Join join{.address = kOther.address};
            (takes(known, as_member(0, middle, join)) ? taken : refused) = middle;
        }
        REQUIRE(taken > known);
        known = taken;
    }

    Member owner = joining(options, kOther);
    (void)owner.take_effects();
    const Refuse refusal{.reason = RefuseReason::kIncarnation, .incarnation = known};
    owner.on_message(kRoot, {.view = 1, .round = 6, .incarnation = 5, .body = refusal}, kNow);
    const Seen seen(owner);
    REQUIRE(seen.find<Persist>() != nullptr);
    owner.on_persisted(seen.find<Persist>()->incarnation, kNow);
    const Seen asked(owner);
    REQUIRE(asked.sent<Join>(kRoot.name) != nullptr);
    CHECK(takes(known, asked.sent<Join>(kRoot.name)->message));
}

}  // namespace member_numbers_test
