// Goal: what a member does in cases that a world of members does not bring about by itself: two
// daemons of one name, other rules, an end in the middle of a join. Method: a single member, told
// what others would tell it.

#include "eh/peers/member.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace member_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;

// -- two daemons of one name --

TEST_CASE("eh member: a second daemon of a living member's name and address is refused", "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(kOther, as_member(0, 6, Join{.address = kOther.address}), kNow);
    const Seen asked(root);
    REQUIRE(asked.sent<Poll>(kOther.name) != nullptr);
    CHECK(asked.find<ReadStore>() == nullptr);

    // The member lives, and is at that address.
    root.on_message(kOther, as_member(1, 5, PollAck{}), kNow + 1ms);

    const Seen answered(root);
    REQUIRE(answered.event(EventKind::kSecondOfName) != nullptr);
    CHECK(answered.event(EventKind::kSecondOfName)->name == kOther.name);
    const Send* const refusal = answered.sent<Refuse>(kOther.name);
    REQUIRE(refusal != nullptr);
    CHECK(refusal->message.round == 6);
    CHECK(std::get<Refuse>(refusal->message.body).reason == RefuseReason::kSecondOfName);
    root.on_time(kNow + 10s);
    CHECK(Seen(root).find<SwapStore>() == nullptr);
}

TEST_CASE("eh member: a daemon that was started again says so, and takes its place at once",
          "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(kOther, as_member(0, 6, Join{.address = kOther.address}), kNow);
    (void)root.take_effects();

    Member again = joining(options, kOther);
    (void)again.take_effects();
    again.on_message(kRoot, as_member(1, 5, Poll{}), kNow);
    const Seen said(again);
    const Send* const ack = said.sent<PollAck>(kRoot.name);
    REQUIRE(ack != nullptr);
    CHECK(ack->message.incarnation == 6);
    root.on_message(kOther, ack->message, kNow + 1ms);

    const Seen taken(root);
    CHECK(taken.event(EventKind::kSecondOfName) == nullptr);
    CHECK(taken.find<ReadStore>() != nullptr);
}

TEST_CASE("eh member: one that does not answer is replaced after the grace", "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(kOther, as_member(0, 6, Join{.address = kOther.address}), kNow);
    CHECK(Seen(root).find<ReadStore>() == nullptr);

    root.on_time(kNow + options.grace);

    CHECK(Seen(root).find<ReadStore>() != nullptr);
}

TEST_CASE("eh member: a second daemon of the root's name does not take its place", "[eh]") {
    const MemberOptions options;
    Member second = joining(options, kRoot);
    (void)second.take_effects();
    second.on_view_read(committed(view_of_three(1)), kNow);
    const Seen asked(second);
    CHECK(asked.sent<Promise>(kOther.name) == nullptr);
    const Send* const join = asked.sent<Join>(kRoot.name);
    REQUIRE(join != nullptr);

    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(kRoot, join->message, kNow);
    const Seen refused(root);
    CHECK(refused.event(EventKind::kSecondOfName) != nullptr);
    const Send* const refusal = refused.sent<Refuse>(kRoot.name);
    REQUIRE(refusal != nullptr);
    second.on_message(kRoot, refusal->message, kNow + 1ms);

    const Seen ended(second);
    CHECK(ended.event(EventKind::kSecondOfName) != nullptr);
    REQUIRE(ended.find<Answer>() != nullptr);
    CHECK(ended.find<Answer>()->epoch.error().os_errno == EEXIST);
    second.on_time(kNow + 10s);
    CHECK(Seen(second).sent<Promise>(kOther.name) == nullptr);
}

TEST_CASE("eh member: the root's own next incarnation asks for promises at once", "[eh]") {
    const MemberOptions options;
    const bool is_heard = GENERATE(true, false);
    Member again = joining(options, kRoot);
    (void)again.take_effects();
    again.on_view_read(committed(view_of_three(1)), kNow);
    const Seen asked(again);
    const Send* const join = asked.sent<Join>(kRoot.name);
    REQUIRE(join != nullptr);

    // What it has sent to the root's address comes back, or nobody is there.
    if (is_heard) {
        again.on_message(kRoot, join->message, kNow + 1ms);
    } else {
        again.on_time(kNow + options.grace);
    }

    CHECK(Seen(again).sent<Promise>(kOther.name) != nullptr);
}

TEST_CASE("eh member: a promise before the root is silent is for its next process only", "[eh]") {
    const MemberOptions options;
    const Instant soon = kNow + 10ms;
    const Promise elsewhere{.address = "elsewhere"};
    Member member = seated(options, kOther, view_of_three(1));
    member.on_message({.name = kRoot.name, .address = elsewhere.address},
                      as_member(1, 6, elsewhere), soon);
    CHECK(Seen(member).effects.empty());
    // What the member knows of the root's address by itself says nothing of the candidate.
    member.on_message(kRoot, as_member(1, 6, elsewhere), soon);
    CHECK(Seen(member).effects.empty());

    // A message of the root's process of before, or of a daemon that was copied from it.
    member.on_message(kRoot, as_member(1, 5, Promise{.address = kRoot.address}), soon);
    CHECK(Seen(member).effects.empty());

    SECTION("the root was started again") {
        member.on_message(kRoot, as_member(1, 6, Promise{.address = kRoot.address}), soon);
        CHECK(Seen(member).sent<PromiseAck>(kRoot.name) != nullptr);
    }
    SECTION("the root has moved, and is silent") {
        member.on_message(kRoot, as_member(1, 6, elsewhere), kNow + options.root_silent);
        CHECK(Seen(member).sent<PromiseAck>(kRoot.name) != nullptr);
    }
}

TEST_CASE("eh member: a living root refuses a candidate of its name", "[eh]") {
    const MemberOptions options;
    const Peer elsewhere{.name = kRoot.name, .address = "elsewhere"};
    Member second = joining(options, elsewhere);
    second.on_view_read(committed(view_of_three(1)), kNow);
    (void)second.take_effects();
    const Instant silent = kNow + options.root_silent;
    // It asks the root once more, then for promises.
    for (int i = 0; i < 2; ++i) {
        second.on_time(silent);
        second.on_view_read(committed(view_of_three(1)), silent);
    }
    const Seen asked(second);
    const Send* const promise = asked.sent<Promise>(kRoot.name);
    REQUIRE(promise != nullptr);
    CHECK(promise->to.address == kRoot.address);
    CHECK(asked.sent<Promise>(kOther.name) != nullptr);

    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(elsewhere, promise->message, silent);
    const Seen refused(root);
    REQUIRE(refused.event(EventKind::kSecondOfName) != nullptr);
    CHECK(refused.event(EventKind::kSecondOfName)->address == elsewhere.address);
    const Send* const refusal = refused.sent<Refuse>(kRoot.name);
    REQUIRE(refusal != nullptr);
    CHECK(refusal->to.address == elsewhere.address);
    second.on_message(kRoot, refusal->message, silent + 1ms);

    const Seen ended(second);
    REQUIRE(ended.event(EventKind::kSecondOfName) != nullptr);
    CHECK(ended.event(EventKind::kSecondOfName)->address == kRoot.address);
    REQUIRE(ended.find<Answer>() != nullptr);
    CHECK(ended.find<Answer>()->epoch.error().os_errno == EEXIST);
    second.on_message(kOther, as_member(1, 5, PromiseAck{.is_member = true}), silent + 2ms);
    second.on_time(silent + 10s);
    CHECK(Seen(second).find<SwapStore>() == nullptr);
}

TEST_CASE("eh member: a root's own request to join, which comes late, is no second daemon",
          "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    root.on_message(kRoot, as_member(0, 5, Join{.address = kRoot.address}), kNow);
    CHECK(Seen(root).event(EventKind::kSecondOfName) == nullptr);
    root.on_message(kRoot, as_member(0, 6, Join{.address = kRoot.address}), kNow);
    CHECK(Seen(root).event(EventKind::kSecondOfName) != nullptr);
}

TEST_CASE("eh member: two daemons of one name never get one incarnation from a refusal", "[eh]") {
    const MemberOptions options;
    const auto next_of = [&](Incarnation durable) {
        Member member(options, kOther, durable, kNow);
        REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
        member.on_persisted(durable + 1, kNow);
        (void)member.take_effects();
        member.on_message(
            kRoot,
            {.view = 1,
             .round = static_cast<std::uint32_t>(durable + 1),
             .incarnation = 5,
             .body = Refuse{.reason = RefuseReason::kIncarnation, .incarnation = 1000}},
            kNow);
        const Seen seen(member);
        REQUIRE(seen.find<Persist>() != nullptr);
        return seen.find<Persist>()->incarnation;
    };
    CHECK(next_of(3) > 1000);
    CHECK(next_of(3) != next_of(4));
    CHECK(next_of(3) != 1001);
}

// -- other rules --

namespace {

MemberOptions with_rules(std::uint64_t hash, Duration timeout, Duration grace) {
    MemberOptions options;
    options.rules_hash = hash;
    options.rules.timeout = timeout;
    options.grace = grace;
    return options;
}

View view_with_rules(std::uint64_t hash) {
    View view = view_of_three(1);
    view.rules_hash = hash;
    return view;
}

}  // namespace

TEST_CASE("eh member: a daemon with another timeout is refused, and both say what differs",
          "[eh]") {
    const MemberOptions options = with_rules(1, 5s, 500ms);
    MemberOptions other = with_rules(2, 7s, 500ms);
    other.root = kRoot;
    const Peer newcomer{.name = "d", .address = "d"};
    Member root = seated(options, kRoot, view_with_rules(1));
    Member refused = joining(other, newcomer);
    const Seen asked(refused);
    REQUIRE(asked.sent<Join>(kRoot.name) != nullptr);

    root.on_message(newcomer, asked.sent<Join>(kRoot.name)->message, kNow);

    const Seen told(root);
    REQUIRE(told.event(EventKind::kRefused) != nullptr);
    CHECK(told.event(EventKind::kRefused)->name == newcomer.name);
    CHECK(told.event(EventKind::kRefused)->rule == UnlikeRule::kTimeout);
    REQUIRE(told.sent<Refuse>(newcomer.name) != nullptr);
    refused.on_message(kRoot, told.sent<Refuse>(newcomer.name)->message, kNow);
    const Seen ended(refused);
    REQUIRE(ended.event(EventKind::kRefused) != nullptr);
    CHECK(ended.event(EventKind::kRefused)->name == kRoot.name);
    CHECK(ended.event(EventKind::kRefused)->rule == UnlikeRule::kTimeout);
    REQUIRE(ended.find<Answer>() != nullptr);
    CHECK(ended.find<Answer>()->epoch.error().os_errno == EPROTO);
}

TEST_CASE("eh member: a candidate with other rules gets no promise", "[eh]") {
    const MemberOptions options = with_rules(1, 5s, 500ms);
    Member member = seated(options, kOther, view_with_rules(1));
    const Instant silent = kNow + options.root_silent;
    const CommonRules alike{.hash = 1};
    CommonRules unlike{.hash = 2};
    unlike.timeout_ns = static_cast<std::uint64_t>(Duration(5s).count());
    unlike.grace_ns = static_cast<std::uint64_t>(Duration(200ms).count());

    member.on_message(kThird, as_member(1, 5, Promise{.rules = unlike}), silent);
    const Seen refused(member);
    CHECK(refused.sent<PromiseAck>(kThird.name) == nullptr);
    CHECK(refused.sent<Refuse>(kThird.name) != nullptr);
    REQUIRE(refused.event(EventKind::kRefused) != nullptr);
    CHECK(refused.event(EventKind::kRefused)->rule == UnlikeRule::kGrace);

    // It is said once, and the member has promised nothing.
    member.on_message(kThird, as_member(1, 5, Promise{.rules = unlike}), silent);
    CHECK(Seen(member).effects.empty());
    member.on_message(kThird, as_member(1, 5, Promise{.rules = alike}), silent);
    CHECK(Seen(member).sent<PromiseAck>(kThird.name) != nullptr);
}

TEST_CASE("eh member: a candidate that one member refuses goes on with the others", "[eh]") {
    const MemberOptions options = with_rules(1, 5s, 500ms);
    Member member = seated(options, kOther, view_with_rules(1));
    const Instant silent = kNow + options.root_silent;
    member.on_time(silent);
    REQUIRE(Seen(member).find<ReadStore>() != nullptr);
    member.on_view_read(committed(view_with_rules(1)), silent);
    REQUIRE(Seen(member).sent<Promise>(kThird.name) != nullptr);

    const Refuse refuse{.reason = RefuseReason::kRules, .rule = UnlikeRule::kGrace};
    member.on_message(kRoot, {.view = 1, .round = 5, .incarnation = 6, .body = refuse}, silent);
    CHECK(Seen(member).event(EventKind::kRefused) != nullptr);
    member.on_message(kThird, as_member(1, 5, PromiseAck{.is_member = true}), silent);
    member.on_time(silent + options.grace);

    const Seen seen(member);
    REQUIRE(seen.find<SwapStore>() != nullptr);
    CHECK(seen.find<SwapStore>()->next->view().rules_hash == 1);
}

TEST_CASE("eh member: a view with other rules is not taken part in", "[eh]") {
    const MemberOptions options = with_rules(1, 5s, 500ms);
    Member member = joining(options, kOther);
    (void)member.take_effects();
    View view = view_with_rules(2);
    view.roster[1].incarnation = 6;
    member.on_view_read(committed(std::move(view)), kNow);

    CHECK_FALSE(member.is_seated());
    const Seen seen(member);
    CHECK(seen.event(EventKind::kRefused) != nullptr);
    REQUIRE(seen.find<Answer>() != nullptr);
    CHECK(seen.find<Answer>()->epoch.error().os_errno == EPROTO);
}

// -- hosts of the other byte order --

TEST_CASE(
    "eh member: data of a host of the other byte order are converted, wherever they come from",
    "[eh]") {
    using Bytes = std::vector<std::byte>;
    MemberOptions options;
    options.rules.granule = 2;
    options.rules.combine = [](std::span<std::byte> into, std::span<const std::byte> one,
                               std::span<const std::byte> other) {
        for (std::size_t i = 0; i < into.size(); ++i) into[i] = one[i] | other[i];
    };
    options.rules.swap_bytes = [](std::span<std::byte> data) { std::ranges::reverse(data); };
    const Bytes foreign{std::byte{1}, std::byte{2}, std::byte{9}};
    const Bytes native{std::byte{2}, std::byte{1}};
    const auto from_foreign = [](Message message) {
        message.is_foreign = true;
        return message;
    };

    SECTION("in the start of an epoch") {
        Member member = seated(options, kOther, view_of_three(1));
        REQUIRE(member.next_epoch(kFirstEpoch, Bytes(2), kNow));
        (void)member.take_effects();
        member.on_message(
            kRoot, from_foreign(as_member(1, 5, Start{.epoch = 7, .count = 3, .data = foreign})),
            kNow);
        const Seen seen(member);
        REQUIRE(seen.find<Answer>() != nullptr);
        CHECK(seen.find<Answer>()->data == native);
    }
    SECTION("in what a member contributes") {
        Member root = seated(options, kRoot, view_of_three(1));
        REQUIRE(root.next_epoch(kFirstEpoch, Bytes(4), kNow));
        root.on_message(kOther, from_foreign(as_member(1, 5, Ready{.count = 1, .data = foreign})),
                        kNow);
        root.on_message(kThird, as_member(1, 5, Ready{.count = 1, .data = Bytes(4)}), kNow);
        const Seen seen(root);
        REQUIRE(seen.find<Answer>() != nullptr);
        CHECK(seen.find<Answer>()->data == native);
    }
    SECTION("in the last epoch of a view, that the next one has in the store or in a message") {
        View next = view_of_three(2);
        next.carry = {
            .view = 1, .round = 1, .epoch = 7, .count = 3, .data = foreign, .is_foreign = true};
        Member member = seated(options, kOther, view_of_three(1));
        REQUIRE(member.next_epoch(kFirstEpoch, Bytes(2), kNow));
        (void)member.take_effects();
        if (GENERATE(false, true)) {
            // The root is silent, so it looks into the store.
            member.on_time(kNow + options.root_silent);
            REQUIRE(Seen(member).find<ReadStore>() != nullptr);
            member.on_view_read(committed(next), kNow + options.root_silent);
        } else {
            const auto difference = eh::difference(view_of_three(1), next);
            member.on_message(kRoot, as_member(1, 5, ViewNews{.difference = *difference}), kNow);
        }
        const Seen seen(member);
        REQUIRE(seen.find<Answer>() != nullptr);
        CHECK(seen.find<Answer>()->data == native);
    }
}

// -- an end in the middle of a join --

TEST_CASE("eh member: one that stops while it joins takes its request back", "[eh]") {
    const MemberOptions options;
    MemberOptions only_root = options;
    only_root.root = kRoot;
    Member root = seated(options, kRoot, view_of_three(1));
    const Peer newcomer{.name = "d", .address = "d"};
    Member leaver = joining(only_root, newcomer);
    const Seen asked(leaver);
    REQUIRE(asked.sent<Join>(kRoot.name) != nullptr);
    root.on_message(newcomer, asked.sent<Join>(kRoot.name)->message, kNow);
    (void)root.take_effects();

    leaver.last_epoch(kNow + 1ms);
    const Seen left(leaver);
    REQUIRE(left.find<Answer>() != nullptr);
    CHECK(left.find<Answer>()->epoch.error().os_errno == ECANCELED);
    REQUIRE(left.sent<Leave>(kRoot.name) != nullptr);
    CHECK(leaver.standing() == Standing::kLeaving);
    root.on_message(newcomer, left.sent<Leave>(kRoot.name)->message, kNow + 2ms);
    const Seen told(root);
    REQUIRE(told.sent<Nack>(newcomer.name) != nullptr);
    leaver.on_message(kRoot, told.sent<Nack>(newcomer.name)->message, kNow + 3ms);

    CHECK(leaver.standing() == Standing::kDetached);
    root.on_time(kNow + 1s);
    CHECK(Seen(root).find<ReadStore>() == nullptr);
}

TEST_CASE("eh member: one that is in no view says so to who wants to join", "[eh]") {
    // It does not want to be a member; it wants to; it has lost its membership.
    const int how = GENERATE(0, 1, 2);
    CAPTURE(how);
    MemberOptions options;
    Member member(options, kOther, 5, kNow);
    if (how == 1) member = joining(options, kOther);
    if (how == 2) {
        member = seated(options, kOther, view_of_three(1));
        member.on_message(kRoot,
                          {.view = 2,
                           .round = 5,
                           .incarnation = 5,
                           .body = Nack{.number = 2, .is_excluded = true, .root = kRoot.name}},
                          kNow);
        member.on_view_read(committed(view_without_other(2)), kNow);
        REQUIRE_FALSE(member.is_seated());
    }
    (void)member.take_effects();
    member.on_message(kThird, as_member(0, 6, Join{.address = kThird.address}), kNow);

    const Seen seen(member);
    REQUIRE(seen.sent<Redirect>(kThird.name) != nullptr);
    CHECK(std::get<Redirect>(seen.sent<Redirect>(kThird.name)->message.body) == Redirect{});
}

TEST_CASE("eh member: a root has epoch numbers for a day without the store", "[eh]") {
    // The policy epoch_groups begins so many with its default settings, while others are served.
    constexpr std::int64_t kEpochsPerSecond = 1000;
    CHECK(MemberOptions{}.block / 4 > kEpochsPerSecond * 86'400);
}

TEST_CASE("eh member: a root whose view is full answers who wants to join", "[eh]") {
    const MemberOptions options;
    View view = view_of_three(1);
    while (view.roster.size() < kRosterMax) {
        const std::string name = "m" + std::to_string(view.roster.size());
        view.roster.push_back({.name = name, .incarnation = 5, .address = name, .joined = 1});
    }
    Member root = seated(options, kRoot, view);
    root.on_message({.name = "n", .address = "n"}, as_member(0, 6, Join{.address = "n"}), kNow);
    CHECK(Seen(root).sent<Beat>("n") != nullptr);
}

TEST_CASE("eh member: in an empty store who is in no view holds nobody up", "[eh]") {
    MemberOptions options;
    options.others = {kRoot, kOther};
    const bool is_other_member = GENERATE(false, true);
    Member member = joining(options, kRoot);
    member.on_view_read(ViewHandle{}, kNow);
    REQUIRE(Seen(member).sent<Join>(kOther.name) != nullptr);
    Redirect answer;
    if (is_other_member) answer = {.root = kThird.name, .root_address = kThird.address};
    member.on_message(kOther, as_member(0, 6, answer), kNow);

    // It asks the store again.
    const Instant later = kNow + options.grace;
    member.on_time(later);
    if (Seen(member).find<ReadStore>() != nullptr) member.on_view_read(ViewHandle{}, later);
    CHECK((Seen(member).find<SwapStore>() == nullptr) == is_other_member);
}

}  // namespace member_test
