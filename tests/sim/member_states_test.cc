// Goal: each law of the states of members can be seen broken. Method: members that get their
// messages by hand, and a committed view that they are in or not.

#include "sim/epochs/member_states.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace member_states_test {

using namespace fopd;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;
using eh::View;
using sim::EpochWatch;
using sim::MemberStates;

namespace {

struct StatesStage {
    explicit StatesStage(std::vector<std::string> names = {"a", "b", "c"})
        : states(std::move(names), MemberOptions{}.fanout) {
        watch.on_commit(committed(view_of_three(1)));
    }

    void step(std::size_t index, const Member& member) { states.on_step(watch, index, member); }
    std::string broken_law() const { return watch.broken().substr(0, watch.broken().find(':')); }

    MemberOptions options;
    EpochWatch watch;
    MemberStates states;
};

// The root's epoch 1 begins at a member of view 1.
void begin_epoch(Member& member) {
    REQUIRE(member.next_epoch(eh::kFirstEpoch, {}, kNow));
    member.on_message(kRoot, as_member(1, 5, Start{.epoch = 1, .count = 3}), kNow);
    REQUIRE(member.newest_epoch() == 1);
}

void go_on_to(Member& member, const View& view) {
    const std::vector<std::byte> bytes = eh::CommittedView(view).bytes();
    const auto size = static_cast<std::uint32_t>(bytes.size());
    member.on_message(
        kRoot,
        as_member(view.number, 5, ViewPart{.number = view.number, .total = size, .bytes = bytes}),
        kNow);
    REQUIRE(member.view_number() == view.number);
}

}  // namespace

TEST_CASE("sim member states: members leave a view with the same epoch", "[sim]") {
    // An epoch that only one of them has had is seen.
    const bool is_missed = GENERATE(false, true);
    StatesStage stage;
    Member one = seated(stage.options, kOther, view_of_three(1));
    Member other = seated(stage.options, kThird, view_of_three(1));
    begin_epoch(one);
    if (!is_missed) begin_epoch(other);
    const View next = view_of_three(2);
    stage.watch.on_commit(committed(next));
    go_on_to(one, next);
    go_on_to(other, next);
    stage.step(1, one);
    stage.step(2, other);
    CHECK(stage.states.left_views() == 1);
    CHECK(stage.broken_law() == (is_missed ? "I3c" : ""));
}

TEST_CASE("sim member states: a view that a member is in is committed", "[sim]") {
    View view = view_of_three(1);
    SECTION("a newer one") {
        view.number = 2;
    }
    SECTION("another one of its number") {
        view.epoch_high = 7;
    }
    StatesStage stage;
    stage.step(0, seated(stage.options, kRoot, view));
    CHECK(stage.broken_law() == "I7");
}

TEST_CASE("sim member states: a member is in its view", "[sim]") {
    StatesStage stage(std::vector<std::string>{"z"});
    stage.step(0, seated(stage.options, kRoot, view_of_three(1)));
    CHECK(stage.broken_law() == "I8");
}

TEST_CASE("sim member states: a member holds its contribution and one for each child", "[sim]") {
    StatesStage stage;
    Member root = seated(stage.options, kRoot, view_of_three(1));
    root.on_message(kOther, as_member(1, 5, Ready{.count = 1}), kNow);
    REQUIRE(root.next_epoch(eh::kFirstEpoch, {}, kNow));
    REQUIRE(root.contributions() == 2);
    stage.step(0, root);
    Member leaf = seated(stage.options, kThird, view_of_three(1));
    REQUIRE(leaf.next_epoch(eh::kFirstEpoch, {}, kNow));
    stage.step(2, leaf);
    CHECK(stage.broken_law() == "");
}

TEST_CASE("sim member states: too many contributions are seen", "[sim]") {
    View view = view_of_three(1);
    view.roster.push_back({.name = "d", .incarnation = 5, .address = "d", .joined = 1});
    // As if the root had one child, and not three.
    MemberStates states({"a"}, 1);
    EpochWatch watch;
    watch.on_commit(committed(view));
    const MemberOptions options;
    Member root = seated(options, kRoot, view);
    root.on_message(kOther, as_member(1, 5, Ready{.count = 1}), kNow);
    root.on_message(kThird, as_member(1, 5, Ready{.count = 1}), kNow);
    REQUIRE(root.next_epoch(eh::kFirstEpoch, {}, kNow));
    REQUIRE(root.contributions() == 3);
    states.on_step(watch, 0, root);
    CHECK(watch.broken().starts_with("I12: "));
}

TEST_CASE("sim member states: the next process of a member begins anew", "[sim]") {
    StatesStage stage;
    Member before = seated(stage.options, kOther, view_of_three(1));
    stage.step(1, before);
    stage.states.on_crash(1);
    const Member next(stage.options, kOther, 6, kNow);
    stage.step(1, next);
    CHECK(stage.broken_law() == "");
    CHECK(stage.states.left_views() == 0);
}

}  // namespace member_states_test
