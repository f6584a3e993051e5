// Goal: a node is ready whatever its disks hold, and however slow or broken they are; what can be
// read of them is read. Method: the real Node over simulated disks that outlive it.

#include "tests/sim/disk_machine.h"

using namespace fopd;
using namespace fopd::sim;
using namespace fopd::sim::testing;

TEST_CASE("sim disks: without the table a slot that two disks have is seen", "[sim]") {
    DiskMachine machine(6);
    REQUIRE(machine.start());
    machine.stop();
    devices::DiskImage away = machine.node.disks().image("d1");
    machine.node.disks().unplug("d1");
    machine.node.disks().lose_slots();
    REQUIRE(machine.start());
    REQUIRE(machine.report("d1").slot == 2);
    machine.stop();
    machine.node.disks().plug_in("d0", std::move(away));

    REQUIRE(machine.start());

    REQUIRE(machine.report("d0").state == std::string("given-up"));
    REQUIRE_THAT(machine.report("d0").reason, ContainsSubstring("has slot 2, as disk "));
    REQUIRE(machine.report("d1").state == std::string("good"));
}

TEST_CASE("sim disks: an older copy of a disk is only read", "[sim]") {
    DiskMachine machine(8);
    REQUIRE(machine.start());
    REQUIRE(machine.put(0, 1));
    machine.stop();
    devices::DiskImage older = machine.node.disks().image("d0");
    REQUIRE(machine.start());
    REQUIRE(machine.put(0, 2));
    machine.stop();
    machine.node.disks().plug_in("d0", std::move(older));
    const auto before = bytes_of(machine.node.disks().image("d0"));

    REQUIRE(machine.start());

    const DiskReport d0 = machine.report("d0");
    REQUIRE(d0.state == std::string("read-only"));
    REQUIRE(d0.read_only);
    REQUIRE_THAT(d0.reason, ContainsSubstring("older copy"));
    REQUIRE_THAT(d0.reason, ContainsSubstring("(entries "));
    REQUIRE(machine.node.events().count("daemon.device_damaged") == 1);
    REQUIRE(machine.has(0, 1));
    REQUIRE_FALSE(machine.put(0, 3));
    REQUIRE(machine.put(1, 3));
    machine.stop();
    REQUIRE(bytes_of(machine.node.disks().image("d0")) == before);
}

TEST_CASE("sim disks: of a disk whose log lacks flushed entries the rest can be read", "[sim]") {
    DiskMachine machine(13);
    REQUIRE(machine.start());
    for (std::uint64_t number = 1; number <= 20; ++number) REQUIRE(machine.put(0, number));
    machine.stop();
    machine.node.disks().lose_indexes();
    constexpr std::uint64_t kLogBegins = store::Log::kSegmentsBlock * devices::kBlockBytes;
    machine.node.disks().image("d0").flip_bit(kLogBegins + 9 * devices::kBlockBytes + 100, 3);
    const auto before = bytes_of(machine.node.disks().image("d0"));

    for (int life = 0; life < 2; ++life) {
        REQUIRE(machine.start());
        REQUIRE(machine.report("d0").state == std::string("read-only"));
        REQUIRE(machine.report("d0").read_only);
        REQUIRE_THAT(machine.report("d0").reason, ContainsSubstring("(entries 10 to "));
        REQUIRE(machine.has(0, 1));
        REQUIRE_FALSE(machine.has(0, 20));
        REQUIRE(machine.report("d1").state == std::string("good"));
        machine.stop();
        REQUIRE(bytes_of(machine.node.disks().image("d0")) == before);
    }
}

TEST_CASE("sim disks: an index that the log does not reach back to is made anew", "[sim]") {
    DiskMachine machine(14, {{.name = "d0", .size_bytes = 16U << 20}});
    REQUIRE(machine.start());
    REQUIRE(machine.put(0, 1));
    const devices::DiskId id = machine.disk(0).disk_id();
    machine.stop();
    const store::MapImage older = machine.node.disks().index(id);
    REQUIRE(machine.start());
    constexpr std::uint64_t kObjects = 3000;
    for (std::uint64_t number = 2; number <= kObjects; ++number) REQUIRE(machine.put(0, number));
    machine.stop();
    machine.node.disks().index(id) = older;

    REQUIRE(machine.start());

    REQUIRE(machine.node.events().count("daemon.index_rebuilt") == 1);
    REQUIRE(machine.all_good());
    for (std::uint64_t number = 1; number <= kObjects; ++number) REQUIRE(machine.has(0, number));
}

TEST_CASE("sim disks: the locality's scheduler has those that are open", "[sim]") {
    DiskMachine machine(15);
    devices::DiskImage foreign(32U << 20);
    write_text(foreign, 0, "XFSB");
    machine.node.disks().plug_in("d0", std::move(foreign));
    REQUIRE(machine.start());

    daemon::Locality& locality = *machine.node.node().localities()[1];
    const auto medium = machine.disk(1).medium();
    REQUIRE(locality.io().device(medium) != nullptr);
    REQUIRE(machine.node.node().localities()[0]->io().device(medium) == nullptr);
    machine.stop();
}

TEST_CASE("sim disks: a disk whose flush fails is read-only, and the others serve", "[sim]") {
    DiskMachine machine(9);
    REQUIRE(machine.start());
    REQUIRE(machine.put(0, 1));
    machine.node.disks().set_faults("d0", {.flush_error_ppm = 1'000'000});

    REQUIRE_FALSE(machine.put(0, 2));
    machine.world.run_for(3s);

    REQUIRE(machine.report("d0").state == std::string("read-only"));
    REQUIRE(machine.report("d0").read_only);
    REQUIRE(machine.report("d0").reason == "a flush failed");
    REQUIRE(machine.report("d0").errors >= 1);
    REQUIRE(machine.put(1, 2));
    REQUIRE(machine.node.node().state() == NodeState::kReady);

    machine.restart();
    REQUIRE(machine.all_good());
    REQUIRE(machine.has(0, 1));
}

TEST_CASE("sim disks: a disk that cannot be read at all keeps no other from serving", "[sim]") {
    DiskMachine machine(10);
    REQUIRE(machine.start());
    machine.stop();
    machine.node.disks().image("d0").make_unreadable(0);
    machine.node.disks().image("d0").make_unreadable(1);

    REQUIRE(machine.start());

    REQUIRE(machine.report("d0").state == std::string("given-up"));
    REQUIRE_THAT(machine.report("d0").reason, ContainsSubstring("its label cannot be read"));
    REQUIRE(machine.report("d1").state == std::string("good"));
}

TEST_CASE("sim disks: a start that takes long asks for more time", "[sim]") {
    DiskMachine machine(16);
    machine.node.start();
    while (!machine.node.disks().is_open("d0")) REQUIRE(machine.world.step());
    machine.node.disks().set_faults("d0", {.delay_min = 30s, .delay_max = 30s});

    REQUIRE(machine.run_until_ready());

    REQUIRE(machine.world.now() > Instant{90s});
    REQUIRE(machine.node.manager().extended_count() >= 4);
    REQUIRE(machine.node.manager().status() == "ready");
    const std::uint64_t asked = machine.node.manager().extended_count();
    machine.world.run_for(60s);
    REQUIRE(machine.node.manager().extended_count() == asked);
}

TEST_CASE("sim disks: one that does not answer holds up a stop for the drain's time", "[sim]") {
    DiskMachine machine(11);
    REQUIRE(machine.start());
    REQUIRE(machine.put(0, 1));
    machine.node.disks().set_faults("d0", {.slow_ppm = 1'000'000, .slow_delay = 1h});
    const Instant asked_at = machine.world.now();

    machine.stop();

    REQUIRE(machine.world.now() - asked_at >= 5s);
    REQUIRE(machine.world.now() - asked_at <= 10s);
    REQUIRE(machine.node.events().count("daemon.device_does_not_close") == 1);
    REQUIRE(machine.node.events().count("daemon.device_closed") == 1);
    REQUIRE(machine.start());
    REQUIRE(machine.all_good());
    REQUIRE(machine.has(0, 1));
}

TEST_CASE("sim disks: figures follow what happens within a second or two", "[sim]") {
    DiskMachine machine(12);
    REQUIRE(machine.start());
    machine.node.disks().set_faults("d0", {.delay_min = 1ms, .delay_max = 1ms});
    // A put takes 2 ms, so that these cover a whole second between two publications.
    for (std::uint64_t number = 1; number <= 1000; ++number) REQUIRE(machine.put(0, number));
    REQUIRE(machine.disk(0).figures().busy_ppm.get() > 500'000);
    REQUIRE(machine.disk(1).figures().busy_ppm.get() < 100'000);
    REQUIRE(machine.disk(0).health()->of(devices::DeviceOp::kFlush).count.get() >= 500);
    machine.world.run_for(10s);
    REQUIRE(machine.disk(0).figures().busy_ppm.get() < 100'000);
}
