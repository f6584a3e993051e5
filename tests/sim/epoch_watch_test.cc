// Goal: each broken law of epochs is seen in what daemons answer and commit. Method: views and
// answers made by hand.

#include "sim/epochs/epoch_watch.h"

#include <string>
#include <vector>

#include "tests/catch.h"

using namespace fopd;
using sim::EpochWatch;

namespace {

using Roster = std::vector<eh::RosterEntry>;

const Roster kThree{{.name = "a", .incarnation = 1, .joined = 1},
                    {.name = "b", .incarnation = 1, .joined = 1},
                    {.name = "c", .incarnation = 1, .joined = 1}};

eh::View first_view() {
    return {.number = 1, .roster = kThree, .epoch_low = 1, .epoch_high = 100};
}

// The view after this one, with other members.
eh::View next_of(eh::View view, Roster roster) {
    ++view.number;
    view.roster = std::move(roster);
    return view;
}

struct Watched : EpochWatch {
    Watched() { commit(first_view()); }

    void commit(eh::View view) {
        on_commit(std::make_shared<const eh::CommittedView>(std::move(view)));
    }
    void begin(const std::string& member, eh::EpochNumber epoch, eh::ViewNumber view = 1,
               std::byte data = std::byte{7}) {
        on_epoch(member, {.epoch = epoch, .data = {data}, .view = view});
    }
    std::string broken_law() const { return broken().substr(0, broken().find(':')); }
};

}  // namespace

TEST_CASE("sim epoch watch: nothing is wrong with a root that fails, and a member that returns",
          "[sim]") {
    Watched watch;
    for (const char* const each : {"a", "b", "c"}) watch.begin(each, 1);
    watch.begin("b", 2);
    eh::View next = next_of(first_view(), {kThree[1], kThree[2]});
    next.epoch_low = 101;
    next.epoch_high = 200;
    watch.commit(next);
    watch.begin("c", 2);
    watch.begin("b", 101, 2);
    next = next_of(next, {kThree[1], kThree[2], {.name = "a", .incarnation = 2, .joined = 3}});
    next.epoch_high = 300;
    watch.commit(next);
    watch.begin("a", 250, 3);

    CHECK(watch.broken() == "");
    CHECK(watch.newest() == 250);
    CHECK(watch.newest("b") == 101);
    CHECK(watch.newest("d") == eh::kFirstEpoch);
}

TEST_CASE("sim epoch watch: an epoch has the same bytes and view at all members", "[sim]") {
    const bool is_view = GENERATE(false, true);
    Watched watch;
    watch.commit(next_of(first_view(), kThree));
    watch.begin("a", 1);
    watch.begin("b", 1, is_view ? 2 : 1, is_view ? std::byte{7} : std::byte{8});
    CHECK(watch.broken_law() == "I1");
}

TEST_CASE("sim epoch watch: a member begins no epoch twice, and no earlier one", "[sim]") {
    const eh::EpochNumber second = GENERATE(4U, 5U);
    Watched watch;
    watch.begin("a", 5);
    watch.begin("a", second);
    CHECK(watch.broken_law() == "I2");
}

TEST_CASE("sim epoch watch: an epoch has a committed view", "[sim]") {
    const eh::ViewNumber view = GENERATE(0U, 2U);
    Watched watch;
    watch.begin("a", 1, view);
    CHECK(watch.broken_law() == "I7");
}

TEST_CASE("sim epoch watch: an epoch is in the block of its view", "[sim]") {
    Watched watch;
    watch.begin("a", 101);
    CHECK(watch.broken_law() == "I11");
}

TEST_CASE("sim epoch watch: another root has another block", "[sim]") {
    // A root's next process is another root, and so is another daemon.
    const Roster roster = GENERATE(Roster{{.name = "a", .incarnation = 2, .joined = 2}},
                                   Roster{kThree[1], kThree[2]});
    Watched watch;
    SECTION("the same") {
        watch.commit(next_of(first_view(), roster));
    }
    SECTION("with numbers of the one before") {
        eh::View next = next_of(first_view(), roster);
        next.epoch_low = 100;
        next.epoch_high = 200;
        watch.commit(next);
    }
    CHECK(watch.broken_law() == "I11");
}

TEST_CASE("sim epoch watch: only members begin epochs", "[sim]") {
    Watched watch;
    watch.begin("d", 1);
    CHECK(watch.broken_law() == "I8");
}

TEST_CASE("sim epoch watch: an incarnation that went does not return", "[sim]") {
    Watched watch;
    const eh::View without = next_of(first_view(), {kThree[0], kThree[1]});
    watch.commit(without);
    CHECK(watch.broken() == "");
    watch.commit(next_of(without, kThree));
    CHECK(watch.broken_law() == "I8");
}

TEST_CASE("sim epoch watch: no view is missing", "[sim]") {
    Watched watch;
    eh::View next = first_view();
    next.number = 3;
    watch.commit(next);
    CHECK(watch.broken_law() == "store");
}
