// Goal: what a volume promises to those who change it, one promise each.

#include "store/volume.h"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "devices/memory_disk.h"
#include "store/map_index.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/store/forwarding_device.h"
#include "tests/store/simulated_machine.h"

namespace fopd::store {
namespace {

constexpr Fid kObject{.high = 1, .low = 1};
constexpr std::uint32_t kManyAtOnce = 500;

Object object() {
    return {.size_bytes = 1, .version = 1, .mode = 0600, .owner = "alice", .group = "users"};
}

// The disk of a volume, for its writes in the background.
class BackgroundDisk final : public testing::ForwardingDevice {
public:
    BackgroundDisk(core::Reactor& reactor, devices::Device& disk, Duration write_takes)
        : ForwardingDevice(disk), reactor_(reactor), write_takes_(write_takes) {}
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override {
        const auto slept = co_await reactor_.sleep_for(write_takes_);
        if (!slept) co_return slept;
        co_return co_await device().write(from, offset);
    }

private:
    core::Reactor& reactor_;
    const Duration write_takes_;
};

struct DiskOptions {
    std::uint32_t segment_blocks = 64;
    // Of each write in the background; more than 0: first writes to a block are slow.
    Duration background_write_takes{0};
};

// A volume that serves on a simulated disk.
class VolumeBench : fopd::testing::Replay {
public:
    explicit VolumeBench(VolumeOptions options = {}, const DiskOptions& disk_options = {})
        : Replay(1),
          world(1),
          machine(world),
          disk(machine.plug_in(
              image, {.seed = 1, .slow_holes = disk_options.background_write_takes > Duration{0}})),
          background_(machine.reactor(), *disk, disk_options.background_write_takes),
          index_({.reactor = machine.reactor(), .random = random}, index_image) {
        options.segment_blocks = disk_options.segment_blocks;
        volume = std::make_unique<Volume>(VolumeParts{.reactor = machine.reactor(),
                                                      .device = *disk,
                                                      .index = index_,
                                                      .events = events_,
                                                      .background = &background_},
                                          options);
        REQUIRE(run(volume->format()).has_value());
        REQUIRE(run(volume->open(Volume::Mode::kServe)).has_value());
    }
    ~VolumeBench() { machine.drop_coroutines(); }

    template <typename T>
    T run(Task<T> task) {
        auto result = world.run(machine.reactor(), std::move(task));
        REQUIRE(result.has_value());
        return std::move(*result);
    }
    core::WaitOptions soon() { return {.deadline = after(machine.reactor().now(), 10s)}; }

    // Adds single blocks, each `step` behind the one before, to a change.
    void add_blocks(Change& change, BlockRange blocks, std::uint64_t step) const {
        const std::array<std::uint32_t, 1> checksum{};
        for (std::uint64_t i = 0; i < blocks.count; ++i) {
            const auto range = volume->allocate(1);
            REQUIRE(range.has_value());
            change.records.extent(
                kObject,
                {.first = blocks.first + i * step, .block = range->block, .checksums = checksum});
        }
    }
    Task<Result<Reservation>> reserve_blocks(std::uint64_t count) {
        return volume->reserve(static_cast<std::uint32_t>(count * extent_record_bytes(1)), soon());
    }
    // Every second block becomes an extent of its own.
    Task<Result<void>> write_every_second(BlockRange blocks) {
        for (std::uint64_t first = blocks.first; first < blocks.end(); first += 2 * kManyAtOnce) {
            auto room = co_await reserve_blocks(kManyAtOnce);
            if (!room) co_return std::unexpected(room.error());
            Change change;
            add_blocks(change, {.first = first, .count = kManyAtOnce}, 2);
            const auto done = co_await commit(&change, std::move(*room));
            if (!done) co_return done;
        }
        co_return Result<void>{};
    }
    Task<Result<void>> commit(Change* change, Reservation room) const {
        const auto begun =
            volume->begin(*change, std::move(room), Durability::kDurable, Data::kNone);
        if (!begun) co_return begun;
        const auto finished = co_await volume->finish(change);
        if (!finished) co_return std::unexpected(finished.error());
        co_return Result<void>{};
    }
    Task<Result<void>> put(Fid fid) {
        Change change;
        ValueBuffer buffer;
        change.records.put(Key::object(fid), write_object(buffer, object()));
        auto room = co_await volume->reserve(kPutRecordBytesMax, soon());
        if (!room) co_return std::unexpected(room.error());
        co_return co_await commit(&change, std::move(*room));
    }
    // Objects of one change, with the numbers from `first` on.
    Task<Result<void>> remove(std::uint64_t first, std::uint32_t count) {
        auto room = co_await volume->reserve(count * kRemoveRecordBytes, soon(), Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        Change change;
        for (std::uint64_t i = first; i < first + count; ++i) {
            change.records.remove({.high = 1, .low = i});
        }
        co_return co_await commit(&change, std::move(*room));
    }

    core::VirtualWorld world;
    core::Random random{1};
    devices::DiskImage image{64UL << 20};
    MapImage index_image;
    testing::SimulatedMachine machine;
    std::unique_ptr<devices::MemoryDisk> disk;
    std::unique_ptr<Volume> volume;

private:
    BackgroundDisk background_;
    MapIndex index_;
    core::NullEventSink events_;
};

}  // namespace

TEST_CASE("store volume: a hole over ranges that the sweep has freed meanwhile is made",
          "[store]") {
    static constexpr BlockRange kFront{.first = 0, .count = 6000};
    static constexpr BlockRange kTail{.first = 6000, .count = 10'000};
    static constexpr std::uint64_t kWrites = 300;
    class Punches final : public VolumeBench {
    public:
        Punches() : VolumeBench({.sweep = {.extents_a_turn = 1}}) {}
        Task<Result<void>> punch_write_and_punch() {
            auto room = co_await volume->reserve(kPunchRecordBytes, soon(), Purpose::kCutting);
            if (!room) co_return std::unexpected(room.error());
            auto write_room = co_await reserve_blocks(kWrites);
            if (!write_room) co_return std::unexpected(write_room.error());
            Change front;
            const auto cleared = co_await volume->punch(&front, kObject, kFront, soon());
            if (!cleared) co_return std::unexpected(cleared.error());
            // At once, so that as many cleared ranges are left as there are writes. The sweep
            // begins with blocks before them, so that they are counted before it comes to them.
            auto begun = volume->begin(front, std::move(*room), Durability::kBuffered, Data::kNone);
            if (!begun) co_return begun;
            Change writes;
            add_blocks(writes, {.first = 1000, .count = kWrites}, 16);
            begun =
                volume->begin(writes, std::move(*write_room), Durability::kBuffered, Data::kNone);
            if (!begun) co_return begun;
            Change all;
            const BlockRange range{.first = 0, .count = kTail.end()};
            const auto punched = co_await volume->punch(&all, kObject, range, soon());
            if (!punched) co_return std::unexpected(punched.error());
            freed = *punched;
            co_return Result<void>{};
        }
        std::uint64_t freed = 0;
    };
    Punches bench;
    REQUIRE(bench.run(bench.write_every_second(kFront)).has_value());
    REQUIRE(bench.run(bench.write_every_second(kTail)).has_value());

    const auto punched = bench.run(bench.punch_write_and_punch());
    if (!punched) FAIL(describe(punched.error()));
    REQUIRE(bench.freed == kWrites + kTail.count / 2);
}

TEST_CASE("store volume: an object is not uncertain for a change that could not begin", "[store]") {
    class Failing final : public VolumeBench {
    public:
        Task<Result<void>> put_nonsense() {
            auto room = co_await volume->reserve(kPutRecordBytesMax, soon());
            if (!room) co_return std::unexpected(room.error());
            Change change;
            const std::array<std::byte, 3> nonsense{};
            change.records.put(Key::object(kObject), nonsense);
            co_return co_await commit(&change, std::move(*room));
        }
    };
    Failing bench;
    REQUIRE(bench.run(bench.put(kObject)).has_value());
    REQUIRE(bench.run(bench.put_nonsense()).error().code == Errc::kCorrupt);
    REQUIRE(bench.volume->serving());

    constexpr Fid kOther{.high = 1, .low = 2};
    bench.disk->faults().write_error_ppm = 1'000'000;
    REQUIRE_FALSE(bench.run(bench.put(kOther)).has_value());
    REQUIRE_FALSE(bench.volume->serving());
    REQUIRE(bench.volume->is_uncertain(kOther));
    REQUIRE_FALSE(bench.volume->is_uncertain(kObject));
}

TEST_CASE("store volume: an index without a reserve is given few removals at a time", "[store]") {
    VolumeBench bench;
    for (std::uint64_t i = 1; i <= 90; ++i) {
        REQUIRE(bench.run(bench.put({.high = 1, .low = i})).has_value());
    }
    bench.index_image.has_reserve = false;
    bench.world.run_for(20s);
    REQUIRE(bench.volume->index_failure().has_value());
    bench.index_image.changes_max = 256;

    REQUIRE(bench.run(bench.remove(1, 30)).has_value());
    REQUIRE(bench.run(bench.remove(31, 60)).has_value());
    bench.world.run_for(20s);
    REQUIRE(bench.index_image.refused_count == 0);
}

TEST_CASE("store volume: who finds no block waits for one write of zeros at most", "[store]") {
    static constexpr Duration kWriteTakes = 100ms;  // Of a quarter of a segment.
    VolumeBench bench({}, {.segment_blocks = 256, .background_write_takes = kWriteTakes});
    bench.world.run_for(1ms);  // Its background work waits for what it has to do.
    // Zeros begin when short ranges have filled a segment.
    for (int i = 0; i < 600; ++i) REQUIRE(bench.volume->allocate(1).has_value());
    bench.world.run_for(kWriteTakes / 2);
    while (bench.volume->allocate(1)) continue;

    const Instant before = bench.world.now();
    REQUIRE(bench.run(bench.volume->settle_space(bench.soon())).has_value());
    REQUIRE(bench.volume->allocate(1).has_value());
    REQUIRE(bench.world.now() - before < kWriteTakes);
}

}  // namespace fopd::store
