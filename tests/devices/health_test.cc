// Goal: what a device's operations say of it, and that a device whose writes fail is left alone.
#include "devices/health.h"

#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "devices/watched_device.h"
#include "tests/catch.h"
#include "tests/devices/device_kinds.h"

namespace health_test {

using namespace fopd;
using namespace fopd::core;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

const Result<void> kFailed = std::unexpected(Error{.code = Errc::kIo, .os_errno = 5});
constexpr Instant kStart{1h};

Health::Ended fast(DeviceOp op, Result<void> result = {}) {
    return {.op = op, .size_bytes = 4096, .took = 1ms, .result = result};
}
Health::Ended slow(DeviceOp op) {
    return {.op = op, .size_bytes = 4096, .took = 3s, .result = {}};
}

class Stage {
public:
    explicit Stage(DiskFaults faults = {})
        : world(1),
          reactor(world.make_reactor()),
          image(64 * kBlockBytes),
          disk(*reactor, image, {.name = "d0", .faults = faults}),
          watched(*reactor, disk, events) {}

    Result<void> write() { return world.run(*reactor, watched.write(bytes.buffer(), 0)).value(); }
    Result<void> read() { return world.run(*reactor, watched.read(bytes.buffer(), 0, {})).value(); }
    Result<void> flush() { return world.run(*reactor, watched.flush()).value(); }

    VirtualWorld world;
    std::unique_ptr<Reactor> reactor;
    DiskImage image;
    MemoryDisk disk;
    EventNames events;
    WatchedDevice watched;
    Blocks bytes{1};
};

Task<void> note_result(Task<Result<void>> operation, std::vector<bool>* succeeded) {
    const auto result = co_await std::move(operation);
    succeeded->push_back(result.has_value());
}

}  // namespace

TEST_CASE("devices health: counts, bytes and times of what ended", "[devices]") {
    Health health;
    REQUIRE_FALSE(health.ended(fast(DeviceOp::kRead), kStart));
    health.ended(fast(DeviceOp::kRead, kFailed), kStart);

    REQUIRE(health.of(DeviceOp::kRead).count.get() == 2);
    REQUIRE(health.of(DeviceOp::kRead).errors.get() == 1);
    REQUIRE(health.of(DeviceOp::kRead).bytes.get() == 4096);
    REQUIRE(health.of(DeviceOp::kRead).latency.count() == 2);
    REQUIRE(health.of(DeviceOp::kWrite).count.get() == 0);
}

TEST_CASE("devices health: a failed read makes a device suspect for a while", "[devices]") {
    Health health({.memory = 10min});
    REQUIRE(health.ended(fast(DeviceOp::kRead, kFailed), kStart));
    REQUIRE(health.state() == DeviceState::kSuspect);
    REQUIRE(health.reason() == std::string("a read failed"));
    REQUIRE_FALSE(health.ended(fast(DeviceOp::kRead), kStart + 9min));
    REQUIRE(health.ended(fast(DeviceOp::kRead), kStart + 11min));
    REQUIRE(health.state() == DeviceState::kGood);
}

TEST_CASE("devices health: only a success makes a suspect device good", "[devices]") {
    Health health;
    health.ended(fast(DeviceOp::kRead, kFailed), kStart);
    REQUIRE_FALSE(health.may_be_good(kStart + 9min));
    REQUIRE(health.may_be_good(kStart + 10min));

    const Result<void> cancelled = std::unexpected(Error{.code = Errc::kCancelled});
    REQUIRE_FALSE(health.ended(fast(DeviceOp::kRead, cancelled), kStart + 10min));
    REQUIRE(health.state() == DeviceState::kSuspect);
    REQUIRE_FALSE(health.ended(fast(DeviceOp::kRead, kFailed), kStart + 11min));
    REQUIRE_FALSE(health.may_be_good(kStart + 20min));
    REQUIRE(health.ended(fast(DeviceOp::kRead), kStart + 21min));
    REQUIRE(health.state() == DeviceState::kGood);
    REQUIRE_FALSE(health.may_be_good(kStart + 1h));
}

TEST_CASE("devices health: several outliers make a device suspect, some spread out do not",
          "[devices]") {
    Health health({.slow_after = 1s, .slow_count = 3, .memory = 10min});
    for (int i = 0; i < 5; ++i) {
        REQUIRE_FALSE(health.ended(slow(DeviceOp::kWrite), kStart + i * 6min));
    }
    REQUIRE(health.ended(slow(DeviceOp::kFlush), kStart + 25min));
    REQUIRE(health.state() == DeviceState::kSuspect);
    REQUIRE(health.of(DeviceOp::kWrite).slow.get() == 5);
}

TEST_CASE("devices health: a failed write or flush is for good", "[devices]") {
    const DeviceOp op = GENERATE(DeviceOp::kWrite, DeviceOp::kFlush);
    Health health;
    REQUIRE(health.ended(fast(op, kFailed), kStart));
    REQUIRE(health.state() == DeviceState::kReadOnly);
    REQUIRE_FALSE(health.ended(fast(DeviceOp::kRead, kFailed), kStart + 1s));
    REQUIRE_FALSE(health.ended(fast(DeviceOp::kRead), kStart + 100h));
    REQUIRE_FALSE(health.mark_suspect("later", kStart + 100h));
    REQUIRE(health.state() == DeviceState::kReadOnly);
    REQUIRE(std::string(health.reason()).ends_with("failed"));
}

TEST_CASE("devices health: what was asked wrongly or given up says nothing of the device",
          "[devices]") {
    Health health;
    for (const Errc code : {Errc::kInvalid, Errc::kTimedOut, Errc::kCancelled, Errc::kClosed}) {
        const Result<void> result = std::unexpected(Error{.code = code});
        health.ended(fast(DeviceOp::kRead, result), kStart);
        health.ended(fast(DeviceOp::kWrite, result), kStart);
    }
    REQUIRE(health.state() == DeviceState::kGood);
    // The kernel's own time-out is the device's.
    const Result<void> timed_out = std::unexpected(os_error(110, "I/O"));
    health.ended(fast(DeviceOp::kWrite, timed_out), kStart);
    REQUIRE(health.state() == DeviceState::kReadOnly);
}

TEST_CASE("devices health: a write that found no space is an error of those above", "[devices]") {
    Health health;
    const Result<void> full = std::unexpected(os_error(28, "write"));
    REQUIRE_FALSE(health.ended(fast(DeviceOp::kWrite, full), kStart));
    REQUIRE(health.state() == DeviceState::kGood);
    REQUIRE(health.of(DeviceOp::kWrite).errors.get() == 1);
}

TEST_CASE("devices watched device: after a failed write nothing is written any more", "[devices]") {
    Stage stage;
    REQUIRE(stage.write().has_value());
    stage.disk.faults().write_error_ppm = 1'000'000;
    REQUIRE(stage.write().error().code == Errc::kIo);
    stage.disk.faults().write_error_ppm = 0;
    const DiskCounts before = stage.disk.counts();

    REQUIRE(stage.write().error().code == Errc::kIo);
    REQUIRE(stage.flush().error().code == Errc::kIo);
    REQUIRE(stage.read().has_value());

    REQUIRE(stage.disk.counts().writes == before.writes);
    REQUIRE(stage.disk.counts().flushes == before.flushes);
    REQUIRE(stage.events.names() == "devices.error devices.state ");
}

TEST_CASE("devices watched device: a flush beside one that failed does not succeed", "[devices]") {
    Stage stage({.delay_min = 100us, .delay_max = 100us});
    REQUIRE(stage.write().has_value());
    stage.disk.faults().flush_error_ppm = 1'000'000;
    stage.disk.faults().delay_min = stage.disk.faults().delay_max = 10us;
    std::vector<bool> succeeded;
    Gate gate;
    stage.reactor->spawn(gate, note_result(stage.watched.flush(), &succeeded));
    stage.world.run_for(1us);
    stage.disk.faults().delay_min = stage.disk.faults().delay_max = 5ms;
    stage.reactor->spawn(gate, note_result(stage.watched.flush(), &succeeded));
    stage.world.run_for(100us);
    REQUIRE(succeeded == std::vector{false});
    stage.disk.faults().flush_error_ppm = 0;

    stage.world.run_for(1s);

    REQUIRE(succeeded == std::vector{false, false});
}

TEST_CASE("devices watched device: those above can give a device up", "[devices]") {
    Stage stage;
    stage.watched.mark_suspect("wrong bytes");
    REQUIRE(stage.watched.health().state() == DeviceState::kSuspect);
    stage.watched.mark_read_only("log");
    REQUIRE(stage.write().error().code == Errc::kIo);
    REQUIRE(stage.events.names() == "devices.state devices.state ");
}

TEST_CASE("devices watched: it is busy while anything is under way, once", "[devices]") {
    Stage stage({.delay_min = 1ms, .delay_max = 1ms});
    REQUIRE(stage.watched.busy_time() == 0ms);
    REQUIRE(stage.write().has_value());
    REQUIRE(stage.watched.busy_time() == 1ms);
    stage.world.run_for(1s);

    Gate gate;
    std::vector<bool> succeeded;
    for (int i = 0; i < 8; ++i) {
        stage.reactor->spawn(
            gate, note_result(stage.watched.read(stage.bytes.buffer(), 0, {}), &succeeded));
    }
    stage.world.run_for(1s);
    REQUIRE(succeeded == std::vector<bool>(8, true));
    REQUIRE(stage.watched.busy_time() == 2ms);
}

TEST_CASE("devices watched: one that does not answer is said to be stuck, until it does",
          "[devices]") {
    Stage stage;
    stage.disk.faults().delay_min = stage.disk.faults().delay_max = 35s;
    std::vector<bool> succeeded;
    Gate gate;
    stage.reactor->spawn(gate,
                         note_result(stage.watched.write(stage.bytes.buffer(), 0), &succeeded));
    stage.world.run_for(9s);
    REQUIRE(stage.events.names().empty());
    stage.world.run_for(12s);
    REQUIRE(stage.watched.health().state() == DeviceState::kSuspect);
    REQUIRE(stage.events.names() == "devices.stuck devices.state ");

    stage.world.run_for(1min);
    REQUIRE(succeeded == std::vector{true});
    REQUIRE(stage.events.names() == "devices.stuck devices.state devices.answers ");
}

TEST_CASE("devices watched: one that always has something under way is not stuck", "[devices]") {
    Stage stage({.delay_min = 900ms, .delay_max = 900ms});
    std::vector<bool> succeeded;
    Gate gate;
    for (int i = 0; i < 100; ++i) {
        stage.reactor->spawn(gate,
                             note_result(stage.watched.write(stage.bytes.buffer(), 0), &succeeded));
        stage.world.run_for(450ms);
    }
    stage.world.run_for(1s);
    REQUIRE(succeeded.size() == 100);
    REQUIRE(stage.events.names().empty());
}

TEST_CASE("devices watched: one that still does not answer stays suspect", "[devices]") {
    Stage stage;
    std::vector<bool> succeeded;
    Gate gate;
    stage.disk.faults().delay_min = stage.disk.faults().delay_max = 30min;
    stage.reactor->spawn(gate,
                         note_result(stage.watched.write(stage.bytes.buffer(), 0), &succeeded));
    stage.world.run_for(30s);
    stage.disk.faults().delay_min = stage.disk.faults().delay_max = 1ms;
    stage.world.run_for(15min);
    stage.reactor->spawn(gate,
                         note_result(stage.watched.write(stage.bytes.buffer(), 0), &succeeded));
    stage.world.run_for(1s);
    REQUIRE(succeeded.size() == 1);
    REQUIRE(stage.watched.health().state() == DeviceState::kSuspect);
    REQUIRE(stage.events.names() == "devices.stuck devices.state ");
    stage.world.run_for(30min);
    REQUIRE(succeeded.size() == 2);
}

TEST_CASE("devices watched: one with nothing under way wants nothing of its reactor", "[devices]") {
    Stage stage;
    std::vector<bool> succeeded;
    Gate gate;
    stage.reactor->spawn(gate,
                         note_result(stage.watched.write(stage.bytes.buffer(), 0), &succeeded));
    stage.world.run_for(1s);
    REQUIRE(succeeded == std::vector{true});
    // Others may destroy it, on any thread.
    REQUIRE(stage.reactor->next_deadline() == kNever);
}

}  // namespace health_test
