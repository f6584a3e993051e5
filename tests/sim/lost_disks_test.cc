// Goal: a lost disk is written off when the administrator says so, and no other disk is. Method:
// the real Node over simulated disks that outlive it.

#include "tests/sim/disk_machine.h"

using namespace fopd;
using namespace fopd::sim;
using namespace fopd::sim::testing;

TEST_CASE("sim disks: a lost disk is forgotten on command, for good", "[sim]") {
    OneIsLost machine(21);
    const auto asked = machine.forget({.slot = 2});
    REQUIRE(asked.kind == daemon::DeviceOutcome::Kind::kNotForgotten);
    REQUIRE_THAT(asked.words, ContainsSubstring("at least 1 object with a name would be lost"));
    REQUIRE(machine.state() == objects::SlotState::kMissing);
    REQUIRE(machine.owner_of("lost").has_value());
    REQUIRE(machine.node.node().warnings().size() == 2);

    const auto forgotten = machine.forget({.slot = 2, .is_sure = true});

    REQUIRE(forgotten.kind == daemon::DeviceOutcome::Kind::kForgotten);
    REQUIRE(forgotten.lost->object_count == 1);
    REQUIRE(machine.is_forgotten());
    REQUIRE(machine.owner_of("kept").has_value());
    REQUIRE(machine.layout().pools[0].quota->whole().used().objects == 1);
    REQUIRE(machine.node.node().warnings().size() == 1);
    REQUIRE(machine.node.events().count("daemon.device_forgotten") == 1);
    REQUIRE(machine.put(0, 3, "lost"));
    REQUIRE(machine.owner_of("lost")->fid.slot() == 1);
    machine.restart();
    REQUIRE(machine.state() == objects::SlotState::kWrittenOff);
    REQUIRE(machine.owner_of("lost")->fid.slot() == 1);
    REQUIRE(machine.forget({.slot = 2, .is_sure = true}).lost->object_count == 0);
    machine.stop();

    // It turns up again after all.
    machine.node.disks().bring_back("d1");
    const auto before = bytes_of(machine.node.disks().image("d1"));
    for (const bool names_are_lost : {false, true}) {
        if (names_are_lost) machine.node.disks().lose_names();
        REQUIRE(machine.start());
        REQUIRE(machine.report("d1").state == std::string("given-up"));
        REQUIRE_THAT(machine.report("d1").reason, ContainsSubstring("was written off"));
        REQUIRE(machine.state() == objects::SlotState::kWrittenOff);
        REQUIRE(machine.layout().pools[0].missing.empty());
        REQUIRE(machine.owner_of("lost")->fid.slot() == 1);
        machine.stop();
        REQUIRE(bytes_of(machine.node.disks().image("d1")) == before);
    }
    // Wiped it is one like others.
    machine.node.disks().unplug("d1");
    REQUIRE(machine.start());
    REQUIRE(machine.all_good());
    REQUIRE(machine.report("d1").slot == 3);
}

TEST_CASE("sim disks: only a lost disk can be forgotten", "[sim]") {
    DiskMachine machine(22);
    REQUIRE(machine.start());
    REQUIRE(machine.put(1, 2, "there"));
    const auto refused = [&machine](daemon::DeviceRequests::LostDevice device) {
        device.is_sure = true;
        const auto outcome = machine.forget(std::move(device));
        REQUIRE(outcome.kind == daemon::DeviceOutcome::Kind::kNotForgotten);
        return outcome.words;
    };
    REQUIRE_THAT(refused({.name = "d1"}),
                 ContainsSubstring("the disk of slot 2 is not missing: it is open as d1"));
    REQUIRE_THAT(refused({.slot = 2}), ContainsSubstring("it is open as d1"));
    REQUIRE_THAT(refused({.slot = 9}), ContainsSubstring("no disk ever had slot 9"));
    REQUIRE_THAT(refused({.name = "d9"}), ContainsSubstring("the node has no device of that name"));
    machine.remove("d0");
    REQUIRE_THAT(refused({.slot = 1}), ContainsSubstring("nothing is on the disk of slot 1"));
    REQUIRE(machine.owner_of("there").has_value());
    machine.stop();
    // One that is there, and of no use.
    for (const std::uint64_t superblock : {16U, 32U}) {
        machine.node.disks().image("d1").make_unreadable(superblock);
    }
    REQUIRE(machine.start());
    REQUIRE(machine.forget({.name = "d1", .is_sure = true}).lost->slot == 2);
    REQUIRE_FALSE(machine.owner_of("there").has_value());
    machine.stop();
    // The table of slots has the name of the disk that is gone.
    machine.node.disks().take_away("d0");
    REQUIRE(machine.start());
    REQUIRE(machine.forget({.name = "d0", .is_sure = true}).lost->slot == 1);
}

TEST_CASE("sim disks: an interrupted forget is completed by another one", "[sim]") {
    std::uint64_t steps = 0;
    for (bool done = false; !done; ++steps) {
        OneIsLost machine(23);
        machine.node.forget_device({.slot = 2, .is_sure = true},
                                   [&done](const auto& forgotten) { done = forgotten->done(); });
        for (std::uint64_t i = 0; i < steps && !done; ++i) REQUIRE(machine.world.step());
        const bool says_so = done;
        if (steps % 2 == 0) {
            machine.node.crash();
        } else {
            machine.node.lose_power();
        }
        // Until it is forgotten, the disk may yet come back, and has all it had.
        if (steps % 3 == 2) machine.node.disks().bring_back("d1");
        INFO("killed after " << steps << " steps");
        REQUIRE(machine.start());
        if (says_so) REQUIRE(machine.state() == objects::SlotState::kWrittenOff);
        if (machine.state() == objects::SlotState::kOnline) {
            REQUIRE(machine.owner_of("lost").has_value());
        } else {
            REQUIRE(machine.forget({.slot = 2, .is_sure = true}).done());
            REQUIRE(machine.is_forgotten());
            machine.restart();
            REQUIRE(machine.is_forgotten());
        }
        REQUIRE(machine.owner_of("kept").has_value());
    }
    REQUIRE(steps > 10);
}

TEST_CASE("sim disks: a write-off that may not be noted is none when the disk is back", "[sim]") {
    OneIsLost machine(31);
    machine.node.disks().doubt_slots(true);
    const auto refused = machine.forget({.slot = 2, .is_sure = true});
    REQUIRE(refused.kind == daemon::DeviceOutcome::Kind::kNotForgotten);
    REQUIRE(machine.state() == objects::SlotState::kMissing);
    machine.node.disks().doubt_slots(false);
    machine.node.disks().bring_back("d1");
    machine.add("d1");
    REQUIRE(machine.owner_of("lost").has_value());
    REQUIRE(machine.put(1, 7, "acknowledged"));
    machine.restart();
    REQUIRE(machine.state() == objects::SlotState::kOnline);
    REQUIRE(machine.owner_of("acknowledged").has_value());
}

TEST_CASE("sim disks: a stranger's name writes off no other disk", "[sim]") {
    DiskMachine machine(32, {{.name = "d0"}, {.name = "d1"}, {.name = "d2"}});
    REQUIRE(machine.start());
    machine.stop();
    machine.node.disks().take_away("d1");
    machine.node.disks().unplug("d2");
    machine.node.disks().lose_slots();
    REQUIRE(machine.start());
    REQUIRE(machine.report("d2").slot == 2);
    REQUIRE(machine.put(2, 5, "mine"));
    machine.stop();
    // It says that it has the same slot.
    machine.node.disks().bring_back("d1");
    REQUIRE(machine.start());
    REQUIRE(machine.report("d1").state == std::string("given-up"));
    machine.stop();
    machine.node.disks().take_away("d2");
    REQUIRE(machine.start());

    const auto outcome = machine.forget({.name = "d1", .is_sure = true});

    REQUIRE(outcome.kind == daemon::DeviceOutcome::Kind::kNotForgotten);
    machine.stop();
    machine.node.disks().bring_back("d2");
    REQUIRE(machine.start());
    REQUIRE(machine.report("d2").state == std::string("good"));
    REQUIRE(machine.owner_of("mine").has_value());
}
