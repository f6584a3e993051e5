// Goal: a node uses exactly the disks that are its own, whatever happened to them while it was
// away. Method: the real Node over simulated disks that outlive it, its power cut at every step of
// what it does to them.

#include "tests/sim/disk_machine.h"

using namespace fopd;
using namespace fopd::sim;
using namespace fopd::sim::testing;

TEST_CASE("sim disks: blank ones are taken, and are the node's from then on", "[sim]") {
    DiskMachine machine(1);
    REQUIRE(machine.start());

    REQUIRE(machine.all_good());
    REQUIRE(machine.node.events().count("daemon.device_formatted") == 2);
    const DiskReport d0 = machine.report("d0");
    const DiskReport d1 = machine.report("d1");
    REQUIRE(d0.slot == 1);
    REQUIRE(d1.slot == 2);
    REQUIRE(d0.locality == 0);
    REQUIRE(d1.locality == 1);
    REQUIRE(d0.disk != d1.disk);
    REQUIRE(d0.capacity_bytes == 31U << 20);
    REQUIRE(*d0.free_bytes > 20U << 20);

    machine.restart();
    REQUIRE(machine.all_good());
    REQUIRE(machine.node.events().count("daemon.device_formatted") == 2);
    REQUIRE(machine.report("d0").disk == d0.disk);
    REQUIRE(machine.report("d1").slot == 2);
    REQUIRE(machine.node.events().count("daemon.device_closed") == 2);
    REQUIRE(machine.node.events().errors().empty());
}

TEST_CASE("sim disks: wherever the power goes while disks are taken, the next start takes them",
          "[sim]") {
    std::uint64_t step = 0;
    for (bool ready = false; !ready;) {
        ++step;
        DiskMachine machine(7);
        machine.node.start();
        bool cut = false;
        machine.node.disks().power().cut_at(step, [&cut] { cut = true; });
        while (!cut && !ready) {
            REQUIRE(machine.world.step());
            ready = machine.node.node().state() == NodeState::kReady;
        }
        machine.node.lose_power();

        INFO("power cut at step " << step);
        REQUIRE(machine.start());
        REQUIRE(machine.all_good());
        // Of one that was never served nobody misses anything.
        REQUIRE(machine.layout().pools[0].missing.empty());
        REQUIRE(machine.put(0, 1));
        machine.restart();
        REQUIRE(machine.all_good());
        REQUIRE(machine.has(0, 1));
    }
    REQUIRE(step > 30);
}

TEST_CASE("sim disks: acknowledged changes survive a crash, also without an index", "[sim]") {
    DiskMachine machine(2);
    REQUIRE(machine.start());
    for (std::uint64_t number = 1; number <= 20; ++number) {
        REQUIRE(machine.put(number % 2, number));
    }
    machine.node.lose_power();
    REQUIRE(machine.start());
    REQUIRE(machine.all_good());
    for (std::uint64_t number = 1; number <= 20; ++number) {
        REQUIRE(machine.has(number % 2, number));
    }

    machine.stop();
    machine.node.disks().lose_indexes();
    REQUIRE(machine.start());
    REQUIRE(machine.all_good());
    REQUIRE(machine.node.events().count("daemon.index_rebuilt") == 2);
    for (std::uint64_t number = 1; number <= 20; ++number) {
        REQUIRE(machine.has(number % 2, number));
        REQUIRE_FALSE(machine.has(1 - number % 2, number));
    }
}

TEST_CASE("sim disks: a foreign disk is refused with a reason, and never written", "[sim]") {
    DiskMachine machine(3);
    devices::DiskImage foreign(32U << 20);
    write_text(foreign, 0, "XFSB");
    machine.node.disks().plug_in("d0", std::move(foreign));
    const auto before = bytes_of(machine.node.disks().image("d0"));

    REQUIRE(machine.start());

    const DiskReport d0 = machine.report("d0");
    REQUIRE(d0.state == std::string("given-up"));
    REQUIRE(d0.reason == "holds an XFS file system");
    REQUIRE_FALSE(d0.slot.has_value());
    REQUIRE_FALSE(d0.capacity_bytes.has_value());
    REQUIRE(machine.report("d1").state == std::string("good"));
    REQUIRE(machine.node.events().errors() == std::vector<std::string>{"daemon.device_given_up"});
    const std::vector<daemon::Warning> warnings = machine.node.node().warnings();
    REQUIRE(warnings.size() == 1);
    REQUIRE(warnings[0].text == "device d0 (/sim/d0) is given-up: holds an XFS file system");
    REQUIRE(warnings[0].device == "d0");
    REQUIRE(machine.put(1, 1));
    machine.restart();
    REQUIRE(bytes_of(machine.node.disks().image("d0")) == before);
}

TEST_CASE("sim disks: of a disk and its copy the first is used", "[sim]") {
    DiskMachine machine(4);
    REQUIRE(machine.start());
    machine.stop();
    devices::DiskImage copy = machine.node.disks().image("d0");
    machine.node.disks().plug_in("d1", std::move(copy));
    const auto before = bytes_of(machine.node.disks().image("d1"));

    REQUIRE(machine.start());

    REQUIRE(machine.report("d0").state == std::string("good"));
    REQUIRE(machine.report("d1").state == std::string("given-up"));
    REQUIRE(machine.report("d1").reason == "has the same id as device d0: one is a copy");
    machine.stop();
    REQUIRE(bytes_of(machine.node.disks().image("d1")) == before);
}

TEST_CASE("sim disks: the slot of a disk that is away is given to no other", "[sim]") {
    DiskMachine machine(5);
    REQUIRE(machine.start());
    REQUIRE(machine.put(1, 1));
    machine.stop();
    devices::DiskImage away = machine.node.disks().image("d1");
    machine.node.disks().unplug("d1");

    REQUIRE(machine.start());
    REQUIRE(machine.report("d1").state == std::string("given-up"));
    REQUIRE(machine.report("d1").slot == 2);
    machine.stop();
    machine.node.disks().plug_in("d1", devices::DiskImage(away.size_bytes()));
    REQUIRE(machine.start());
    REQUIRE(machine.report("d1").slot == 3);
    machine.stop();

    machine.node.disks().plug_in("d1", std::move(away));
    REQUIRE(machine.start());
    REQUIRE(machine.report("d1").slot == 2);
    REQUIRE(machine.all_good());
    REQUIRE(machine.has(1, 1));
}

TEST_CASE("sim disks: a missing disk that may have objects is missed by its pool", "[sim]") {
    DiskMachine machine(17);
    REQUIRE(machine.start());
    REQUIRE(machine.layout().pools[0].missing.empty());
    const std::string id = machine.report("d1").disk;
    machine.stop();

    machine.node.disks().take_away("d1");
    REQUIRE(machine.start());
    REQUIRE(machine.layout().find_slot(2)->state == objects::SlotState::kMissing);
    REQUIRE(machine.layout().pools[0].missing ==
            "d1 (given-up: holds something else already), disk " + id);
    machine.stop();

    machine.node.disks().bring_back("d1");
    for (const std::uint64_t superblock : {16U, 32U}) {
        machine.node.disks().image("d1").make_unreadable(superblock);
    }
    REQUIRE(machine.start());
    REQUIRE(machine.layout().pools[0].missing.starts_with("d1 (given-up: it cannot be opened"));
    machine.stop();

    const std::uint64_t size = machine.node.disks().image("d1").size_bytes();
    machine.node.disks().unplug("d1");
    machine.node.disks().plug_in("d1", devices::DiskImage(size));
    REQUIRE(machine.start());
    REQUIRE(machine.all_good());
    REQUIRE(machine.report("d1").slot == 3);
    REQUIRE(machine.layout().pools[0].missing == "disk " + id);
    REQUIRE(machine.layout().find_slot(2)->disk == "disk " + id);
}

TEST_CASE("sim disks: a removed disk is missed only after it has been back", "[sim]") {
    DiskMachine machine(18);
    REQUIRE(machine.start());
    machine.remove("d1");
    REQUIRE(machine.layout().find_slot(2)->state == objects::SlotState::kReleased);
    REQUIRE(machine.layout().pools[0].missing.empty());
    machine.stop();
    devices::DiskImage released = machine.node.disks().image("d1");
    machine.node.disks().unplug("d1");

    REQUIRE(machine.start());
    REQUIRE(machine.report("d1").slot == 3);
    REQUIRE(machine.layout().find_slot(2)->state == objects::SlotState::kReleased);
    REQUIRE(machine.layout().pools[0].missing.empty());
    machine.remove("d1");
    machine.stop();

    machine.node.disks().plug_in("d1", std::move(released));
    REQUIRE(machine.start());
    REQUIRE(machine.report("d1").slot == 2);
    REQUIRE(machine.layout().find_slot(2)->state == objects::SlotState::kOnline);
    machine.stop();
    machine.node.disks().unplug("d1");
    REQUIRE(machine.start());
    REQUIRE(machine.layout().find_slot(2)->state == objects::SlotState::kMissing);
    REQUIRE_FALSE(machine.layout().pools[0].missing.empty());
}
