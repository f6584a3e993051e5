#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulated_node.h"
#include "store/record.h"
#include "tests/catch.h"
#include "tests/replay.h"

namespace fopd::sim::testing {

using daemon::DiskReport;
using daemon::NodeState;

inline constexpr std::uint64_t kManySteps = 2'000'000;

// One node with disks, alone in its world.
class DiskMachine : fopd::testing::Replay {
public:
    using Replay::Seed;

    explicit DiskMachine(std::uint64_t seed,
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
        daemon::Locality& locality = *node.node().localities()[at.locality().index];
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

inline std::vector<std::byte> bytes_of(const devices::DiskImage& image) {
    std::vector<std::byte> bytes(image.size_bytes());
    REQUIRE(image.read(0, bytes).has_value());
    return bytes;
}

inline void write_text(devices::DiskImage& image, std::uint64_t offset, std::string_view text) {
    std::vector<std::byte> block(devices::kBlockBytes);
    const auto bytes = std::as_bytes(std::span(text));
    std::ranges::copy(bytes, block.begin());
    image.end_write(image.begin_write(offset, block), offset, block.size());
    image.settle();
}

// A node without d1, on which was "lost"; "kept" is on d0.
class OneIsLost : public DiskMachine {
public:
    explicit OneIsLost(std::uint64_t seed) : DiskMachine(seed) {
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

}  // namespace fopd::sim::testing
