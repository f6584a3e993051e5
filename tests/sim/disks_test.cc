// Goal: a node uses exactly the disks that are its own, whatever happened to them while it was
// away, loses nothing of what they hold, and is ready whatever they are. Method: the real Node over
// simulated disks that outlive it, its power cut at every step of what it does to them.

#include <map>
#include <optional>
#include <set>

#include "sim/simulated_node.h"
#include "store/record.h"
#include "tests/catch.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::sim;
using daemon::DiskReport;
using daemon::NodeState;

namespace {

constexpr std::uint64_t kManySteps = 2'000'000;

// One node with disks, alone in its world.
class Machine : fopd::testing::Replay {
public:
    using Replay::Seed;

    explicit Machine(std::uint64_t seed,
                     std::vector<SimulatedDiskOptions> disks = {{.name = "d0"}, {.name = "d1"}},
                     Seed whose = Seed::kOfTest)
        : Replay(seed, whose),
          world(seed),
          node(world, {.name = "node", .drain_timeout = 5s, .disks = std::move(disks)}) {}

    // False when it ended instead.
    bool start() {
        node.start();
        return run_until_ready();
    }
    bool run_until_ready() {
        for (std::uint64_t i = 0; i < kManySteps; ++i) {
            if (!node.running() || node.start_failed()) return false;
            if (node.node().state() == NodeState::kReady) return true;
            if (!world.step()) return false;
        }
        return false;
    }
    void stop() {
        node.terminate();
        for (std::uint64_t i = 0; i < kManySteps && node.running(); ++i) {
            world.step();
            node.bury();
        }
        REQUIRE_FALSE(node.running());
    }
    void restart() {
        stop();
        REQUIRE(start());
    }

    std::vector<DiskReport> reports() { return node.node().disks().reports(); }
    DiskReport report(const std::string& name) {
        for (const DiskReport& each : reports()) {
            if (each.name == name) return each;
        }
        FAIL("no disk " + name);
        return {};
    }
    daemon::NodeDisk& disk(std::size_t index) { return *node.node().disks().all()[index]; }
    // As fops find it.
    const objects::StoreLayout& layout() { return node.node().localities()[0]->stores()->layout(); }
    void remove(const std::string& name) {
        bool done = false;
        node.remove_device(name, note_done(&done));
        wait_until(done);
    }
    void add(const std::string& name) {
        bool done = false;
        node.add_device(name, note_done(&done));
        wait_until(done);
    }
    // What came of it.
    daemon::DeviceOutcome forget(daemon::DeviceRequests::LostDevice lost) {
        std::optional<daemon::DeviceOutcome> outcome;
        node.forget_device(std::move(lost), [&outcome](const auto& forgotten) {
            REQUIRE(forgotten.has_value());
            outcome = *forgotten;
        });
        const Instant limit = after(world.now(), 60s);
        while (!outcome && world.step(limit)) {
        }
        REQUIRE(outcome.has_value());
        return *outcome;
    }
    std::optional<objects::NamedObject> owner_of(const std::string& name) {
        std::optional<Result<std::optional<objects::NamedObject>>> found;
        daemon::Locality& locality = *node.node().localities()[0];
        locality.reactor().spawn(locality.work(), look_up(&locality, &name, &found));
        const Instant limit = after(world.now(), 10s);
        while (!found && world.step(limit)) {
        }
        REQUIRE((found && *found));
        return **found;
    }
    bool all_good() {
        for (const DiskReport& each : reports()) {
            if (each.state != std::string("good")) return false;
        }
        return true;
    }
    // An empty object on the disk; true when it is durable.
    bool put(std::size_t index, std::uint64_t number, const std::string& name = {}) {
        daemon::NodeDisk& at = disk(index);
        bool done = false;
        daemon::Locality& locality = *node.node().localities()[at.place().locality];
        locality.reactor().spawn(locality.work(), put_object(&at, number, &name, &done));
        const Instant limit = after(world.now(), 10s);
        while (!done && world.step(limit)) {
        }
        return done;
    }
    bool has(std::size_t index, std::uint64_t number) {
        const auto found = disk(index).volume()->map().find(fid_on(disk(index), number));
        return found.has_value() && found->has_value();
    }

    core::VirtualWorld world;
    SimulatedNode node;

private:
    static SimulatedNode::DeviceEnded note_done(bool* done) {
        return [done](const daemon::DeviceRequests::Outcome& changed) {
            *done = changed && changed->done();
        };
    }
    void wait_until(const bool& done) {
        const Instant limit = after(world.now(), 60s);
        while (!done && world.step(limit)) {
        }
        REQUIRE(done);
    }

    static store::Fid fid_on(const daemon::NodeDisk& disk, std::uint64_t number) {
        return {.high = std::uint64_t{*disk.slot()} << 48, .low = number};
    }
    static Task<void> look_up(daemon::Locality* locality, const std::string* name,
                              std::optional<Result<std::optional<objects::NamedObject>>>* found) {
        const objects::ObjectName wanted{.pool = objects::pool_id("fast"), .name = *name};
        auto owner = co_await locality->stores()->parts().names.find(wanted);
        found->emplace(std::move(owner));
    }
    static Task<void> put_object(daemon::NodeDisk* disk, std::uint64_t number,
                                 const std::string* name, bool* done) {
        store::Volume* const volume = disk->volume();
        auto reserved = co_await volume->reserve(store::kPutRecordBytesMax, {});
        if (!reserved) co_return;
        store::Change change;
        store::ValueBuffer buffer;
        store::Object object{.version = 1, .owner = "alice", .group = "users"};
        if (!name->empty()) {
            object.pool = objects::pool_id("fast");
            object.name = *name;
            object.name_version = number;
        }
        change.records.put(store::Key::object(fid_on(*disk, number)), write_object(buffer, object));
        const auto begun = volume->begin(change, std::move(*reserved), store::Durability::kDurable,
                                         store::Data::kNone);
        if (!begun) co_return;
        const auto finished = co_await volume->finish(&change);
        *done = finished.has_value();
    }
};

std::vector<std::byte> bytes_of(const devices::DiskImage& image) {
    std::vector<std::byte> bytes(image.size_bytes());
    REQUIRE(image.read(0, bytes).has_value());
    return bytes;
}

void write_text(devices::DiskImage& image, std::uint64_t offset, std::string_view text) {
    std::vector<std::byte> block(devices::kBlockBytes);
    const auto bytes = std::as_bytes(std::span(text));
    std::ranges::copy(bytes, block.begin());
    image.end_write(image.begin_write(offset, block), offset, block.size());
    image.settle();
}

}  // namespace

TEST_CASE("sim disks: blank ones are taken, and are the node's from then on", "[sim]") {
    Machine machine(1);
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
        Machine machine(7);
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
    Machine machine(2);
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
    Machine machine(3);
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
    REQUIRE(machine.node.node().warnings() ==
            std::vector<std::string>{"device d0 (/sim/d0) is given-up: holds an XFS file system"});
    REQUIRE(machine.put(1, 1));
    machine.restart();
    REQUIRE(bytes_of(machine.node.disks().image("d0")) == before);
}

TEST_CASE("sim disks: of a disk and its copy the first is used", "[sim]") {
    Machine machine(4);
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
    Machine machine(5);
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
    Machine machine(17);
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
    Machine machine(18);
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

namespace {

// A node without d1, on which was "lost"; "kept" is on d0.
class OneIsLost : public Machine {
public:
    explicit OneIsLost(std::uint64_t seed) : Machine(seed) {
        REQUIRE(start());
        REQUIRE(put(0, 1, "kept"));
        REQUIRE(put(1, 2, "lost"));
        stop();
        node.disks().take_away("d1");
        REQUIRE(start());
    }
    objects::SlotState state() { return layout().find_slot(2)->state; }
    bool is_forgotten() {
        return state() == objects::SlotState::kWrittenOff && layout().pools[0].missing.empty() &&
               !owner_of("lost");
    }
};

}  // namespace

TEST_CASE("sim disks: a lost disk is forgotten on command, for good", "[sim]") {
    OneIsLost machine(21);
    const auto asked = machine.forget({.slot = 2});
    REQUIRE(asked.kind == daemon::DeviceOutcome::Kind::kNotForgotten);
    REQUIRE_THAT(asked.words, ContainsSubstring("1 object with a name would be lost"));
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
    Machine machine(22);
    REQUIRE(machine.start());
    REQUIRE(machine.put(1, 2, "there"));
    const auto refused = [&machine](daemon::DeviceRequests::LostDevice device) {
        device.is_sure = true;
        const auto outcome = machine.forget(std::move(device));
        REQUIRE(outcome.kind == daemon::DeviceOutcome::Kind::kNotForgotten);
        return outcome.words;
    };
    REQUIRE_THAT(refused({.name = "d1"}), ContainsSubstring("slot 2 is there: d1 is open"));
    REQUIRE_THAT(refused({.slot = 2}), ContainsSubstring("d1 is open"));
    REQUIRE_THAT(refused({.slot = 9}), ContainsSubstring("no disk ever had slot 9"));
    REQUIRE_THAT(refused({.name = "d9"}), ContainsSubstring("nobody can see which slot"));
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
    // Its name alone does not tell which one that was.
    machine.node.disks().take_away("d0");
    REQUIRE(machine.start());
    const std::string words = refused({.name = "d0"});
    REQUIRE_THAT(words, ContainsSubstring("slot 1 of pool fast is missing: disk "));
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

TEST_CASE("sim disks: without the table a slot that two disks have is seen", "[sim]") {
    Machine machine(6);
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
    Machine machine(8);
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
    Machine machine(13);
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
    Machine machine(14, {{.name = "d0", .size_bytes = 16U << 20}});
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
    Machine machine(15);
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
    Machine machine(9);
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
    Machine machine(10);
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
    Machine machine(16);
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
    Machine machine(11);
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
    Machine machine(12);
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

namespace {

// Lives that end in any way at any moment, objects written in each; the trace hash.
std::uint64_t run_lives(std::uint64_t seed) {
    core::Random random(seed);
    std::vector<SimulatedDiskOptions> disks;
    const std::uint64_t disk_count = 1 + random.below(3);
    for (std::uint64_t i = 0; i < disk_count; ++i) {
        disks.push_back({.name = "d" + std::to_string(i), .size_bytes = 16U << 20});
    }
    Machine machine(seed, std::move(disks), Machine::Seed::kOfSwarm);
    std::map<std::size_t, std::set<std::uint64_t>> acknowledged;
    std::map<std::string, std::string> ids;
    std::uint64_t number = 0;
    for (int life = 0; life < 6; ++life) {
        machine.node.start();
        // Sometimes it does not get to be ready.
        if (random.below(3) == 0) {
            machine.node.disks().power().cut_at(1 + random.below(80));
            machine.world.run_for(Duration{random.between(0, Duration{30ms}.count())});
            machine.node.lose_power();
            continue;
        }
        REQUIRE(machine.run_until_ready());
        for (const DiskReport& each : machine.reports()) {
            REQUIRE(each.state == std::string("good"));
            const auto known = ids.try_emplace(each.name, each.disk).first;
            REQUIRE(known->second == each.disk);
        }
        for (const auto& [index, numbers] : acknowledged) {
            for (const std::uint64_t each : numbers) REQUIRE(machine.has(index, each));
        }
        const std::uint64_t writes = random.below(30);
        for (std::uint64_t i = 0; i < writes; ++i) {
            const std::size_t index = random.below(disk_count);
            ++number;
            if (machine.put(index, number)) acknowledged[index].insert(number);
        }
        switch (random.below(4)) {
            case 0: machine.stop(); break;
            case 1: machine.node.crash(); break;
            case 2: machine.node.lose_power(); break;
            case 3:  // In the middle of a stop.
                machine.node.terminate();
                machine.node.disks().power().cut_at(1 + random.below(20));
                machine.world.run_for(Duration{random.between(0, Duration{30ms}.count())});
                machine.node.lose_power();
                break;
            default: break;
        }
        if (random.below(4) == 0 && !machine.node.running()) machine.node.disks().lose_indexes();
    }
    if (machine.node.running()) machine.node.crash();
    REQUIRE(machine.start());
    REQUIRE(machine.all_good());
    for (const auto& [index, numbers] : acknowledged) {
        for (const std::uint64_t each : numbers) REQUIRE(machine.has(index, each));
    }
    machine.stop();
    return machine.world.trace_hash();
}

}  // namespace

TEST_CASE("sim disks: nothing acknowledged is lost, however lives end", "[sim][swarm]") {
    std::uint64_t first = 1;
    std::uint64_t count = 60;
    bool all_twice = false;
    if (const char* const seed = std::getenv("FOPD_SEED"); seed != nullptr) {
        first = std::strtoull(seed, nullptr, 10);
        count = 1;
        all_twice = true;
    } else if (const char* const seeds = std::getenv("FOPD_SWARM_SEEDS"); seeds != nullptr) {
        count = std::strtoull(seeds, nullptr, 10);
        all_twice = true;
    }
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const std::uint64_t hash = run_lives(seed);
        if (all_twice || seed % 4 == 0) {
            REQUIRE(run_lives(seed) == hash);
        }
    }
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
    Machine machine(32, {{.name = "d0"}, {.name = "d1"}, {.name = "d2"}});
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
