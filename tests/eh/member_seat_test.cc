// Goal: a holder of the peer key that lies takes nobody's seat away, and names that it invents keep
// the members waiting for one timeout only. Method: a single member, told what nobody honest would
// tell it.

#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace member_seat_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;

TEST_CASE("eh member: nobody's word ends a membership, only a view of the store does", "[eh]") {
    const bool is_shared = GENERATE(true, false);
    const MemberOptions options = is_shared ? MemberOptions{} : with_static_root();
    const View next = view_without_other(2);
    View unlike = view_of_three(2);
    unlike.rules_hash = 9;
    struct Lie {
        Peer from;
        Message message;
    };
    const std::vector<Lie> lies{{kRoot, of_exclusion(2)},
                                {{.name = "x", .address = "x"}, of_exclusion(2)},
                                {kThird, as_member(2, 5, whole(next))},
                                {kThird, as_member(2, 5, whole(unlike))}};
    const std::size_t which = GENERATE(0U, 1U, 2U, 3U);
    const bool is_true = GENERATE(true, false);
    CAPTURE(is_shared, which, is_true);
    Member member = seated(options, kOther, view_of_three(1));
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    (void)member.take_effects();

    member.on_message(lies[which].from, lies[which].message, kNow);
    CHECK(member.is_seated());
    CHECK(member.is_pending());
    const Seen asked(member);
    CHECK((asked.find<ReadStore>() != nullptr) == is_shared);
    CHECK((asked.sent<ViewWant>(kRoot.name) != nullptr) == !is_shared);

    const View known = is_true ? next : view_of_three(1);
    if (is_shared) {
        member.on_view_read(committed(known), kNow);
    } else {
        member.on_message(kRoot, as_member(known.number, 5, whole(known)), kNow);
    }
    CHECK(member.is_seated() == !is_true);
    const Seen seen(member);
    CHECK((seen.event(EventKind::kEvicted) != nullptr) == is_true);
    CHECK((seen.find<Answer>() != nullptr) == is_true);
    if (is_true) return;
    member.on_message(kRoot, as_member(1, 5, Start{.epoch = 7, .count = 3}), kNow);
    CHECK(member.newest_epoch() == 7);
}

TEST_CASE("eh member: one that is said to be evicted reads the store until it knows", "[eh]") {
    const MemberOptions options;
    Member member = seated(options, kOther, view_of_three(1));
    const auto reads = [&](Instant at) {
        member.on_message(kThird, of_exclusion(2), at);
        return Seen(member).find<ReadStore>() != nullptr;
    };
    REQUIRE(reads(kNow));
    member.on_view_read(std::unexpected(Error{.code = Errc::kTimedOut, .context = "no store"}),
                        kNow);
    CHECK_FALSE(reads(kNow + options.grace - 1ms));
    REQUIRE(reads(kNow + options.grace));
    member.on_view_read(committed(view_without_other(2)), kNow + options.grace);
    CHECK_FALSE(member.is_seated());
}

TEST_CASE("eh member: one that has believed in a wrong view gets the next one whole", "[eh]") {
    const MemberOptions options;
    View wrong = view_of_three(2);
    wrong.roster[2].address = "somewhere else";
    View next = view_of_three(3);
    next.roster.push_back({.name = "d", .incarnation = 1, .address = "d", .joined = 3});
    Member member = seated(options, kOther, view_of_three(1));
    member.on_message(kThird, as_member(2, 5, whole(wrong)), kNow);
    REQUIRE(member.view_number() == 2);
    (void)member.take_effects();

    const ViewNews news{.difference = *eh::difference(view_of_three(2), next)};
    member.on_message(kRoot, as_member(3, 5, news), kNow);
    CHECK(member.view_number() == 2);
    CHECK(Seen(member).sent<ViewWant>(kRoot.name) != nullptr);
    member.on_message(kRoot, as_member(3, 5, whole(next)), kNow);
    CHECK(member.view()->view() == next);
}

TEST_CASE("eh member: one that was told a wrong end of a round is not evicted for that", "[eh]") {
    constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    Member member = seated(options, kOther, view_of_three(1));
    const std::uint32_t lie = GENERATE(false, true) ? 2 : kLast;
    CAPTURE(lie);
    member.on_message(kRoot, as_member(1, 5, Abort{.next_round = lie}), kNow);
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    const Seen reported(member);
    REQUIRE(reported.sent<Ready>(kRoot.name) != nullptr);
    const Message& ready = reported.sent<Ready>(kRoot.name)->message;
    CHECK(ready.round < kLast / 2);

    REQUIRE(root.next_epoch(kFirstEpoch, {}, kNow));
    root.on_message(kOther, ready, kNow);
    root.on_message(kThird, as_member(1, 5, Ready{.count = 1}), kNow);
    const Instant over = kNow + options.rules.timeout;
    root.on_time(over);
    const Seen asks(root);
    REQUIRE(asks.sent<Poll>(kOther.name) != nullptr);
    member.on_message(kRoot, asks.sent<Poll>(kOther.name)->message, over);
    const Seen answers(member);
    REQUIRE(answers.sent<PollAck>(kRoot.name) != nullptr);
    root.on_message(kOther, answers.sent<PollAck>(kRoot.name)->message, over);

    // The rounds begin again, in a new view of all.
    REQUIRE(Seen(root).find<ReadStore>() != nullptr);
    root.on_view_read(committed(view_of_three(1)), over);
    const Seen changes(root);
    REQUIRE(changes.find<SwapStore>() != nullptr);
    CHECK(changes.find<SwapStore>()->next->find(kOther.name, 5).has_value());
}

TEST_CASE("eh member: invented names that outnumber the members are evicted", "[eh]") {
    const MemberOptions options;
    View view = view_of_three(2);
    for (const char* const name : {"p", "q", "r", "s", "t"})
        view.roster.push_back({.name = name, .incarnation = 1, .address = name, .joined = 2});
    // Those that have contributed before are silent rather because the root is cut off.
    const bool has_contributed = GENERATE(false, true);
    const ViewNumber begun = has_contributed ? 2 : 1;
    view.carry = {.view = begun, .round = 1, .epoch = 1, .count = 3};
    Member root = seated(options, kRoot, view);
    REQUIRE(root.next_epoch(kFirstEpoch, {}, kNow));
    for (const Peer& peer : {kOther, kThird})
        root.on_message(peer, as_member(2, 5, Ready{.count = 1}), kNow);

    const Instant over = kNow + options.rules.timeout;
    root.on_time(over);
    REQUIRE(Seen(root).sent<Poll>("p") != nullptr);
    root.on_time(over + options.grace);
    CHECK((Seen(root).find<ReadStore>() != nullptr) == !has_contributed);
    CHECK(root.is_pending() == !has_contributed);
    if (has_contributed) return;
    root.on_view_read(committed(view), over + options.grace);
    const Seen seen(root);
    REQUIRE(seen.find<SwapStore>() != nullptr);
    CHECK(seen.find<SwapStore>()->next->size() == 3);
}

TEST_CASE("eh member: names that are invented again and again stop no epoch", "[eh]") {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    Instant now = kNow;
    const auto join = [&](const std::string& name) {
        root.on_message({.name = name, .address = name}, as_member(0, 6, Join{.address = name}),
                        now);
    };
    const auto from_members = [&](ViewNumber view, const Body& body) {
        for (const Peer& peer : {kOther, kThird})
            root.on_message(peer, as_member(view, 5, body), now);
    };
    const auto commit = [&] {
        REQUIRE(Seen(root).find<ReadStore>() != nullptr);
        root.on_view_read(root.view(), now);
        REQUIRE(Seen(root).find<SwapStore>() != nullptr);
        root.on_view_swapped(Swapped::kYes, now);
        return root.view()->size();
    };
    REQUIRE(root.next_epoch(kFirstEpoch, {}, now));
    from_members(1, Ready{.count = 1});
    REQUIRE(root.newest_epoch() == 1);
    from_members(1, StartAck{});

    REQUIRE(root.next_epoch(1, {}, now));
    join("p");
    now += options.join_batch;
    root.on_time(now);
    CHECK(commit() == 4);
    from_members(2, Ready{.count = 1});
    join("q");
    now = kNow + options.rules.timeout;
    root.on_time(now);
    now += options.grace;
    root.on_time(now);
    CHECK(commit() == 3);
    from_members(3, Ready{.count = 1});
    CHECK(root.newest_epoch() == 2);
}

}  // namespace member_seat_test
