// Goal: a holder of the peer key that lies, or a daemon with a damaged file or another
// configuration, holds up a member no longer than its messages arrive. Method: a single member,
// told what nobody honest would tell it.

#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace member_liar_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;

namespace {

const Peer kNewcomer{.name = "d", .address = "d"};

// Whether a root whose view is this one takes such a request to join up.
bool heeds(View view, const Peer& from, Incarnation incarnation, EpochNumber newest) {
    const MemberOptions options;
    Member root = seated(options, kRoot, std::move(view));
    root.on_message(
        from, as_member(0, incarnation, Join{.address = from.address, .newest = newest}), kNow);
    const Seen seen(root);
    return seen.sent<Beat>(from.name) != nullptr;
}

}  // namespace

TEST_CASE("eh member: a root promises to take part in no view", "[eh]") {
    const Instant later = kNow + 10s;
    const Promise promise{.address = kOther.address};

    SECTION("a root that alone keeps the view knows that there is no other") {
        const MemberOptions options = with_static_root();
        Member root = seated(options, kRoot, view_of_three(1));
        root.on_message(kOther, as_member(2, 6, promise), later);
        const Seen seen(root);
        CHECK(seen.sent<PromiseAck>(kOther.name) == nullptr);
        CHECK(seen.event(EventKind::kDropped) != nullptr);
        Member member = seated(options, kThird, view_of_three(1));
        member.on_message(kOther, as_member(1, 5, promise), later);
        CHECK(Seen(member).sent<PromiseAck>(kOther.name) == nullptr);
    }
    SECTION("another root asks the store for the newer view") {
        const MemberOptions options;
        Member root = seated(options, kRoot, view_of_three(1));
        root.on_message(kOther, as_member(2, 6, promise), later);
        const Seen seen(root);
        CHECK(seen.sent<PromiseAck>(kOther.name) == nullptr);
        REQUIRE(seen.find<ReadStore>() != nullptr);

        const bool is_true = GENERATE(false, true);
        root.on_view_read(committed(view_of_three(is_true ? 2 : 1)), later);
        CHECK(root.view_number() == (is_true ? 2U : 1U));
    }
}

TEST_CASE("eh member: only the store makes a member root", "[eh]") {
    const bool is_shared = GENERATE(true, false);
    const bool in_parts = GENERATE(true, false);
    const bool is_true = GENERATE(true, false);
    CAPTURE(is_shared, in_parts, is_true);
    const MemberOptions options = is_shared ? MemberOptions{} : with_static_root();
    View next = view_of_three(2);
    std::swap(next.roster[0], next.roster[1]);
    Member member = seated(options, kOther, view_of_three(1));
    if (in_parts) {
        member.on_message(kRoot, as_member(2, 5, whole(next)), kNow);
    } else {
        const auto difference = eh::difference(view_of_three(1), next);
        REQUIRE(difference.has_value());
        member.on_message(kRoot, as_member(1, 5, ViewNews{.difference = *difference}), kNow);
    }
    CHECK(member.view_number() == 1);
    CHECK_FALSE(member.is_root());
    CHECK((Seen(member).find<ReadStore>() != nullptr) == is_shared);
    CHECK(member.dropped() == (is_shared ? 0U : 1U));
    if (!is_shared) return;

    member.on_view_read(committed(is_true ? next : view_of_three(1)), kNow);
    CHECK(member.is_root() == is_true);
    CHECK(member.view_number() == (is_true ? 2U : 1U));
}

TEST_CASE("eh member: a view that somebody has emptied in the store is a lost one", "[eh]") {
    const MemberOptions options;
    const bool is_empty = GENERATE(true, false);
    CAPTURE(is_empty);
    View stored = view_of_three(1);
    if (is_empty) stored.roster.clear();
    Member member = seated(options, kOther, view_of_three(1));
    const Instant silent = kNow + options.root_silent;
    member.on_time(silent);
    REQUIRE(Seen(member).find<ReadStore>() != nullptr);
    member.on_view_read(committed(stored), silent);
    const Seen seen(member);
    CHECK((seen.event(EventKind::kViewLost) != nullptr) == is_empty);
    CHECK((seen.sent<Promise>(kThird.name) != nullptr) == !is_empty);
    CHECK(seen.find<SwapStore>() == nullptr);
    CHECK(member.is_seated());
}

TEST_CASE("eh member: a root of one view is not made root of another by a message", "[eh]") {
    const bool is_shared = GENERATE(true, false);
    const MemberOptions options = is_shared ? MemberOptions{} : with_static_root();
    Member root = seated(options, kRoot, view_of_three(1));
    View lie = view_of_three(1'000'000);
    // Of the root alone, or without it: a root that alone has the store knows both for lies.
    const bool has_root = GENERATE(true, false) || is_shared;
    if (has_root) {
        lie.roster.resize(1);
    } else {
        lie.roster.erase(lie.roster.begin());
    }
    root.on_message(kThird, as_member(lie.number, 5, whole(lie)), kNow);
    CHECK(root.view_number() == 1);
    CHECK(root.is_root());
    CHECK((Seen(root).find<ReadStore>() != nullptr) == is_shared);
    if (!is_shared) return;
    root.on_view_read(committed(view_of_three(1)), kNow);
    CHECK(root.view_number() == 1);
    CHECK(root.is_root());
}

TEST_CASE("eh member: a root that alone has the store stays root, whatever others say", "[eh]") {
    MemberOptions options = with_static_root();
    SECTION("that there is a view without it") {
        Member root = seated(options, kRoot, view_of_three(1));
        const Nack lie{
            .number = 9, .is_excluded = true, .root = kThird.name, .root_address = kThird.address};
        root.on_message(kOther, {.view = 9, .round = 5, .incarnation = 5, .body = lie}, kNow);
        CHECK(root.is_root());
        CHECK(Seen(root).event(EventKind::kEvicted) == nullptr);
    }
    SECTION("that there are members already") {
        options.others = {kRoot, kOther, kThird};
        Member root = joining(options, kRoot);
        (void)root.take_effects();
        const Redirect lie{.root = kThird.name, .root_address = kThird.address};
        root.on_message(kOther, as_member(9, 5, lie), kNow);
        root.on_view_read(ViewHandle{}, kNow);
        CHECK(Seen(root).find<SwapStore>() != nullptr);
    }
}

TEST_CASE("eh member: a view that nobody has keeps no other view away for long", "[eh]") {
    constexpr ViewNumber kLast = std::numeric_limits<ViewNumber>::max();
    const MemberOptions options;
    const bool is_seated = GENERATE(true, false);
    Member member =
        is_seated ? seated(options, kOther, view_of_three(1)) : joining(options, kOther);
    View next = view_of_three(2);
    if (!is_seated) {
        member.on_view_read(committed(view_of_three(1)), kNow);
        next.roster[1].incarnation = 6;
        next.roster[1].joined = 2;
    }
    ViewNews news{.difference{.base = kLast - 1, .rest = next}};
    news.difference.rest.roster.clear();
    news.difference.rest.number = kLast;
    const ViewPart later_part{.number = kLast, .offset = 1, .total = 9, .bytes{std::byte{1}}};
    const ViewPart long_part{.number = kLast, .total = 1, .bytes{std::byte{1}, std::byte{1}}};
    // A member that is in no view does not heed the first one.
    const std::vector<Body> lies{Ready{.count = 1}, news, later_part, long_part};
    const std::size_t which = GENERATE(0U, 1U, 2U, 3U);
    CAPTURE(is_seated, which);
    member.on_message(kThird, as_member(kLast, 5, lies[which]), kNow);

    // The root is alive all the time.
    Instant now = kNow;
    while (now < kNow + 2 * options.grace) {
        now += options.grace / 4;
        member.on_message(kRoot, as_member(1, 5, Beat{}), now);
        member.on_time(now);
    }
    member.on_message(kRoot, as_member(2, 5, whole(next)), now);
    CHECK(member.view_number() == 2);
    CHECK(member.is_seated());
}

TEST_CASE("eh member: an epoch outside of its view's numbers does not begin", "[eh]") {
    const MemberOptions options;
    View view = view_of_three(1);
    view.epoch_high = 1000;
    Member member = seated(options, kOther, view);
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    const EpochNumber epoch =
        GENERATE(EpochNumber{0}, 1001, std::numeric_limits<EpochNumber>::max());
    member.on_message(kRoot, as_member(1, 5, Start{.epoch = epoch, .count = 3}), kNow);
    CHECK(member.is_pending());
    CHECK(member.newest_epoch() == 0);
    member.on_message(kRoot, as_member(1, 5, Start{.epoch = 1000, .count = 3}), kNow);
    CHECK(member.newest_epoch() == 1000);
}

TEST_CASE("eh member: the last of all numbers keeps nobody out of later epochs", "[eh]") {
    constexpr EpochNumber kHeeded = kEpochMax / 2;
    const MemberOptions options;
    // A view that no root has made.
    View lie = view_of_three(1);
    lie.epoch_high = kEpochMax;
    Member member = seated(options, kOther, lie);
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    member.on_message(kRoot, as_member(1, 5, Start{.epoch = kEpochMax, .count = 3}), kNow);
    REQUIRE(member.newest_epoch() == kEpochMax);
    member.on_message(kRoot, of_exclusion(2), kNow);
    member.on_view_read(committed(view_without_other(2)), kNow);
    REQUIRE_FALSE(member.is_seated());

    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    member.on_persisted(6, kNow);
    const Seen asked(member);
    REQUIRE(asked.sent<Join>(kRoot.name) != nullptr);
    CHECK(std::get<Join>(asked.sent<Join>(kRoot.name)->message.body).newest == kHeeded);
    View next = view_of_three(3);
    next.roster[1].incarnation = 6;
    next.roster[1].joined = 3;
    next.epoch_low = kHeeded + 1;
    next.epoch_high = kHeeded + options.block;
    member.on_message(kRoot, as_member(3, 5, whole(next)), kNow);
    REQUIRE(member.is_seated());
    member.on_message(kRoot, as_member(3, 5, Start{.epoch = kHeeded + 1, .count = 3}), kNow);
    CHECK(member.newest_epoch() == kHeeded + 1);
    CHECK_FALSE(member.is_pending());
}

TEST_CASE("eh member: a request to join moves the numbers of epochs to a bound only", "[eh]") {
    constexpr EpochNumber kMost = std::numeric_limits<EpochNumber>::max();
    CHECK(heeds(view_of_three(1), kNewcomer, 6, kEpochMax));
    CHECK_FALSE(heeds(view_of_three(1), kNewcomer, 6, kEpochMax + 1));
    CHECK_FALSE(heeds(view_of_three(1), kNewcomer, 6, kMost));
    CHECK_FALSE(heeds(view_of_three(1), kNewcomer, 6, -1));

    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(kNewcomer, as_member(0, 6, Join{.address = "d", .newest = kEpochMax}), kNow);
    (void)root.take_effects();
    root.on_time(kNow + options.join_batch);
    REQUIRE(Seen(root).find<ReadStore>() != nullptr);
    root.on_view_read(committed(view_of_three(1)), kNow + 1s);
    const Seen seen(root);
    REQUIRE(seen.find<SwapStore>() != nullptr);
    CHECK(seen.find<SwapStore>()->next->view().epoch_high < kEpochMax / 2 + 2 * options.block);
}

TEST_CASE("eh member: a name is not locked out by a high incarnation", "[eh]") {
    constexpr Incarnation kMost = std::numeric_limits<Incarnation>::max();
    constexpr Incarnation kFar = Incarnation{1} << 48;
    CHECK(heeds(view_of_three(1), kNewcomer, 1 << 24, 0));
    CHECK_FALSE(heeds(view_of_three(1), kNewcomer, kFar, 0));
    CHECK_FALSE(heeds(view_of_three(1), kNewcomer, kIncarnationMax, 0));
    CHECK_FALSE(heeds(view_of_three(1), kNewcomer, kMost, 0));
    // The owner of a name that somebody has used joins above it.
    View view = view_of_three(1);
    view.gone = {{.name = kNewcomer.name, .incarnation = kFar}};
    CHECK(heeds(view, kNewcomer, kFar + (1 << 17), 0));
    CHECK_FALSE(heeds(view, kNewcomer, kFar, 0));

    const MemberOptions options = with_static_root();
    for (const Incarnation known : {Incarnation{1000}, kFar, kIncarnationMax, kMost}) {
        CAPTURE(known);
        Member member = joining(options, kOther);
        (void)member.take_effects();
        const Refuse refusal{.reason = RefuseReason::kIncarnation, .incarnation = known};
        member.on_message(kRoot, {.view = 1, .round = 6, .incarnation = 5, .body = refusal}, kNow);
        const Seen seen(member);
        CHECK((seen.find<Persist>() != nullptr) == (known == 1000));
    }
}

TEST_CASE("eh member: one that has too high a number begins again behind the known one", "[eh]") {
    constexpr Incarnation kUnknownMost = (Incarnation{1} << 40) + (Incarnation{1} << 32);
    const MemberOptions options = with_static_root();
    const bool is_told = GENERATE(true, false);
    Member member =
        is_told ? joining(options, kOther) : Member(options, kOther, Incarnation{1} << 50, kNow);
    if (is_told) {
        (void)member.take_effects();
        const Refuse lie{.reason = RefuseReason::kIncarnation, .incarnation = kUnknownMost};
        member.on_message(kRoot, {.view = 1, .round = 6, .incarnation = 5, .body = lie}, kNow);
    } else {
        // Its file is damaged.
        REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    }
    const auto join = [&] {
        const Seen asked(member);
        REQUIRE(asked.find<Persist>() != nullptr);
        member.on_persisted(asked.find<Persist>()->incarnation, kNow);
        const Seen seen(member);
        REQUIRE(seen.sent<Join>(kRoot.name) != nullptr);
        return seen.sent<Join>(kRoot.name)->message;
    };
    const Message first = join();
    CHECK(first.incarnation > kUnknownMost);

    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(kOther, first, kNow);
    const Seen refused(root);
    CHECK(refused.sent<Beat>(kOther.name) == nullptr);
    CHECK(root.dropped() == 1);
    REQUIRE(refused.sent<Refuse>(kOther.name) != nullptr);
    member.on_message(kRoot, refused.sent<Refuse>(kOther.name)->message, kNow);

    const Message second = join();
    CHECK(second.incarnation > 5);
    CHECK(second.incarnation < kUnknownMost);
    root.on_message(kOther, second, kNow);
    CHECK(Seen(root).sent<Beat>(kOther.name) != nullptr);
    CHECK(root.dropped() == 1);
}

TEST_CASE("eh member: a number that no daemon can have makes nobody begin again", "[eh]") {
    const MemberOptions options = with_static_root();
    constexpr Incarnation kHigh = (Incarnation{1} << 40) + 1;
    Member member(options, kOther, kHigh - 1, kNow);
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    member.on_persisted(kHigh, kNow);
    (void)member.take_effects();
    const Refuse lie{.reason = RefuseReason::kIncarnation,
                     .incarnation = std::numeric_limits<Incarnation>::max()};
    const auto round = static_cast<std::uint32_t>(kHigh);
    member.on_message(kRoot, {.view = 1, .round = round, .incarnation = 5, .body = lie}, kNow);
    CHECK(Seen(member).find<Persist>() == nullptr);
    CHECK(member.dropped() == 1);
}

TEST_CASE("eh member: a promise does not lock its sender's name out of later views", "[eh]") {
    const MemberOptions options;
    Member candidate = seated(options, kOther, view_of_three(1));
    const Instant silent = kNow + options.root_silent;
    candidate.on_time(silent);
    REQUIRE(Seen(candidate).find<ReadStore>() != nullptr);
    candidate.on_view_read(committed(view_of_three(1)), silent);
    REQUIRE(Seen(candidate).sent<Promise>(kThird.name) != nullptr);

    const auto promised = [&](const Peer& from, Incarnation incarnation) {
        const PromiseAck ack{.wants_join = true, .address = from.address};
        candidate.on_message(from, as_member(1, incarnation, ack), silent);
    };
    promised(kThird, Incarnation{1} << 48);
    CHECK(candidate.dropped() == 1);
    promised(kRoot, 6);
    CHECK(candidate.dropped() == 1);
    candidate.on_time(silent + options.grace);

    const Seen seen(candidate);
    REQUIRE(seen.find<SwapStore>() != nullptr);
    CHECK_FALSE(seen.find<SwapStore>()->next->find(kThird.name).has_value());
    CHECK(seen.find<SwapStore>()->next->find(kRoot.name, 6).has_value());
}

TEST_CASE("eh member: who claims to have waited for long shortens no other's time", "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    REQUIRE(root.next_epoch(kFirstEpoch, {}, kNow));
    root.on_message(kOther, as_member(1, 5, Ready{.count = 1}), kNow);
    root.on_message(kThird, as_member(1, 5, Ready{.count = 1}), kNow);
    REQUIRE(root.newest_epoch() == 1);
    root.on_message(kOther, as_member(1, 5, StartAck{}), kNow);
    root.on_message(kThird, as_member(1, 5, StartAck{}), kNow);

    constexpr std::uint64_t kHour = 3'600'000'000;
    Message lie = as_member(1, 5, First{.waited_us = kHour});
    if (GENERATE(false, true)) lie.body = Ready{.count = 1, .waited_us = kHour};
    lie.round = 2;
    root.on_message(kOther, lie, kNow + 1ms);
    (void)root.take_effects();

    // The third member has the whole timeout from the last epoch on.
    const Instant over = kNow + options.rules.timeout;
    for (Instant now = kNow + options.grace; now < over; now += options.grace) {
        root.on_time(now);
        CHECK(Seen(root).sent<Poll>(kThird.name) == nullptr);
    }
    root.on_time(over);
    CHECK(Seen(root).sent<Poll>(kThird.name) != nullptr);
}

TEST_CASE("eh member: a view with numbers that no daemon gets near is none", "[eh]") {
    const auto is_lawful = [](const View& view) {
        return decode_view(encode_view(view)).has_value();
    };
    View view = view_of_three(1);
    CHECK(is_lawful(view));
    view.epoch_high = kEpochMax + 1;
    CHECK_FALSE(is_lawful(view));
    view = view_of_three(1);
    view.carry.epoch = view.epoch_high + 1;
    CHECK_FALSE(is_lawful(view));
    view = view_of_three(1);
    view.roster[1].incarnation = kIncarnationMax + 1;
    CHECK_FALSE(is_lawful(view));
    view = view_of_three(1);
    view.gone = {{.name = "d", .incarnation = kIncarnationMax + 1}};
    CHECK_FALSE(is_lawful(view));
}

TEST_CASE("eh member: a member asks the configured root, whatever others call the root", "[eh]") {
    const MemberOptions options = with_static_root();
    Member member = seated(options, kOther, view_of_three(1));
    Message lie = of_exclusion(9);
    std::get<Nack>(lie.body).root = "x";
    member.on_message({.name = "x", .address = "x"}, lie, kNow);
    REQUIRE(Seen(member).sent<ViewWant>(kRoot.name) != nullptr);
    member.on_message(kRoot, as_member(2, 5, whole(view_without_other(2))), kNow);
    REQUIRE_FALSE(member.is_seated());
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    member.on_persisted(6, kNow);
    CHECK(Seen(member).sent<Join>(kRoot.name) != nullptr);
}

TEST_CASE("eh member: daemons with different roots in their configurations say so once", "[eh]") {
    const MemberOptions options = with_static_root();
    Member member = joining(options, kThird);
    (void)member.take_effects();
    const Redirect redirect{.root = kOther.name, .root_address = kOther.address};
    member.on_message(kRoot, as_member(1, 5, redirect), kNow);
    const Seen told(member);
    REQUIRE(told.event(EventKind::kRefused) != nullptr);
    CHECK(told.event(EventKind::kRefused)->rule == UnlikeRule::kRoot);
    member.on_message(kRoot, as_member(1, 5, redirect), kNow + 1s);
    CHECK(Seen(member).event(EventKind::kRefused) == nullptr);
}

TEST_CASE("eh member: a seat that was given up is not taken again by an older view", "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    // It learns of a view without it, then gets the one before that.
    root.on_message(kOther, of_exclusion(3), kNow);
    View next = view_of_three(3);
    next.roster.erase(next.roster.begin());
    root.on_view_read(committed(next), kNow);
    REQUIRE_FALSE(root.is_seated());
    root.on_message(kOther, as_member(2, 5, whole(view_of_three(2))), kNow + 1ms);
    CHECK_FALSE(root.is_seated());
    CHECK_FALSE(root.is_root());
}

TEST_CASE("eh member: what nobody may say is dropped and counted, and changes nothing", "[eh]") {
    struct Lie {
        const char* what;
        Peer from;
        Message message;
    };
    const Start start{.epoch = 7, .count = 3};
    const Peer stranger{.name = "x", .address = kRoot.address};
    const std::vector<Lie> lies{
        {"a start of a daemon that is in no view", stranger, as_member(1, 5, start)},
        {"a start of the root's process of before", kRoot, as_member(1, 4, start)},
        {"a start of a process that the root never had", kRoot, as_member(1, 6, start)},
        {"a start with an impossible incarnation", kRoot, as_member(1, kIncarnationMax + 1, start)},
        {"a start in the member's own name", kOther, as_member(1, 5, start)},
        {"a start of a member that is not above", kThird, as_member(1, 5, start)},
        {"an abort of a member that is not above", kThird, as_member(1, 5, Abort{.next_round = 9})},
        {"a start with a number of no view", kRoot,
         as_member(1, 5, Start{.epoch = kEpochMax, .count = 3})},
        {"a contribution of no child", kThird, as_member(1, 5, Ready{.count = 1})},
        {"a contribution of the parent", kRoot, as_member(1, 5, Ready{.count = 1})},
        {"a first call of no child", kThird, as_member(1, 5, First{})},
    };
    const MemberOptions options;
    for (const Lie& lie : lies) {
        CAPTURE(lie.what);
        Member member = seated(options, kOther, view_of_three(1));
        REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
        (void)member.take_effects();

        member.on_message(lie.from, lie.message, kNow);

        CHECK(member.dropped() == 1);
        const Seen seen(member);
        CHECK(seen.effects.size() == 1);
        REQUIRE(seen.event(EventKind::kDropped) != nullptr);
        CHECK(seen.event(EventKind::kDropped)->name == lie.from.name);
        CHECK(member.is_pending());
        CHECK(member.newest_epoch() == 0);
        CHECK(member.view_number() == 1);
        // What the root says afterwards still counts.
        member.on_message(kRoot, as_member(1, 5, start), kNow);
        CHECK(member.newest_epoch() == 7);
    }
}

TEST_CASE("eh member: a message of an old view is answered and changes nothing", "[eh]") {
    const MemberOptions options;
    Member member = seated(options, kOther, view_of_three(2));
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    (void)member.take_effects();

    member.on_message(kRoot, as_member(1, 5, Start{.epoch = 7, .count = 3}), kNow);

    const Seen seen(member);
    CHECK(seen.effects.size() == 1);
    CHECK(seen.sent<Nack>(kRoot.name) != nullptr);
    CHECK(member.is_pending());
    CHECK(member.newest_epoch() == 0);
    CHECK(member.view_number() == 2);
}

TEST_CASE("eh member: a start that is replayed begins no epoch again", "[eh]") {
    const MemberOptions options;
    Member member = seated(options, kOther, view_of_three(1));
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    const Message start = as_member(1, 5, Start{.epoch = 7, .count = 3});
    member.on_message(kRoot, start, kNow);
    REQUIRE(Seen(member).find<Answer>() != nullptr);

    // Before its next call, and during it: also as if it were of the next round.
    member.on_message(kRoot, start, kNow);
    CHECK(Seen(member).find<Answer>() == nullptr);
    REQUIRE(member.next_epoch(7, {}, kNow));
    (void)member.take_effects();
    Message renumbered = start;
    renumbered.round = 2;
    for (const Message& replayed : {start, renumbered}) {
        member.on_message(kRoot, replayed, kNow);
        CHECK(Seen(member).find<Answer>() == nullptr);
        CHECK(member.is_pending());
        CHECK(member.newest_epoch() == 7);
    }
}

TEST_CASE("eh member: a contribution that is replayed is counted once", "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    REQUIRE(root.next_epoch(kFirstEpoch, {}, kNow));
    const Message ready = as_member(1, 5, Ready{.count = 1});
    for (int i = 0; i < 3; ++i) root.on_message(kOther, ready, kNow);
    CHECK(root.is_pending());
    CHECK(Seen(root).event(EventKind::kOtherBytes) == nullptr);
    root.on_message(kThird, ready, kNow);
    REQUIRE_FALSE(root.is_pending());
    const EpochNumber begun = root.newest_epoch();
    CHECK(begun > 0);

    // In the next round, it is answered with the start of its own one.
    REQUIRE(root.next_epoch(begun, {}, kNow));
    (void)root.take_effects();
    root.on_message(kOther, ready, kNow);
    const Seen seen(root);
    CHECK(seen.effects.size() == 1);
    REQUIRE(seen.sent<Start>(kOther.name) != nullptr);
    CHECK(std::get<Start>(seen.sent<Start>(kOther.name)->message.body).epoch == begun);
    root.on_message(kThird, ready, kNow);
    CHECK(root.is_pending());
    CHECK(root.newest_epoch() == begun);
}

}  // namespace member_liar_test
