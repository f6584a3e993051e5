// Goal: the simulated disk keeps the contract of a device, fails as it is told, and stops dead when
// the power goes.
#include "devices/memory_disk.h"

#include <memory>
#include <optional>

#include "core/virtual_world.h"
#include "tests/catch.h"
#include "tests/devices/blocks.h"
#include "tests/replay.h"

namespace memory_disk_test {

using namespace fopd;
using namespace fopd::core;
using namespace fopd::devices;
using fopd::devices::testing::Blocks;

namespace {

constexpr std::uint64_t kDiskBytes = 64 * kBlockBytes;
constexpr std::uint32_t kAlways = 1'000'000;

// A machine with one disk.
class Stage : fopd::testing::Replay {
public:
    explicit Stage(MemoryDiskOptions options = {}, std::uint64_t seed = 1)
        : Replay(seed), world(seed), reactor(world.make_reactor()), image(kDiskBytes) {
        options.power = &power;
        disk = std::make_unique<MemoryDisk>(*reactor, image, std::move(options));
    }

    // Empty when it never ends.
    std::optional<Result<void>> try_read(const Blocks& into, std::uint64_t offset,
                                         WaitOptions wait = {}) {
        return world.run(*reactor, disk->read(into.buffer(), offset, wait));
    }
    Result<void> read(const Blocks& into, std::uint64_t offset, WaitOptions wait = {}) {
        return try_read(into, offset, wait).value();
    }
    std::optional<Result<void>> try_write(const Blocks& from, std::uint64_t offset) {
        return world.run(*reactor, disk->write(from.buffer(), offset));
    }
    Result<void> write(const Blocks& from, std::uint64_t offset) {
        return try_write(from, offset).value();
    }
    Result<void> flush() { return world.run(*reactor, disk->flush()).value(); }
    Result<void> discard(std::uint64_t offset, std::uint64_t size_bytes) {
        return world.run(*reactor, disk->discard(offset, size_bytes)).value();
    }
    Blocks content(std::uint64_t offset, std::size_t count) {
        Blocks into(count);
        REQUIRE(read(into, offset).has_value());
        return into;
    }

    VirtualWorld world;
    std::unique_ptr<Reactor> reactor;
    DiskImage image;
    Power power;
    std::unique_ptr<MemoryDisk> disk;
};

// One write, a flush, and another write, as a machine does them whose power may go.
Task<void> write_flush_write(MemoryDisk* disk, const Blocks* first, const Blocks* second,
                             int* acknowledged) {
    const auto written = co_await disk->write(first->buffer(), 0);
    ENSURE(written.has_value());
    const auto flushed = co_await disk->flush();
    ENSURE(flushed.has_value());
    ++*acknowledged;
    const auto again = co_await disk->write(second->buffer(), 0);
    ENSURE(again.has_value());
    const auto flushed_again = co_await disk->flush();
    ENSURE(flushed_again.has_value());
    ++*acknowledged;
}

}  // namespace

TEST_CASE("devices memory disk: takes time, and keeps what was written", "[devices]") {
    Stage stage;
    const Instant began = stage.world.now();

    const auto written = stage.write(Blocks(2, 0x11), kBlockBytes);

    REQUIRE(written.has_value());
    REQUIRE(stage.world.now() >= began + 10us);
    REQUIRE(stage.content(kBlockBytes, 2).all(0x11));
    REQUIRE(stage.disk->counts().writes == 1);
    REQUIRE(stage.disk->counts().reads == 1);
}

TEST_CASE("devices memory disk: failing reads fail, and leave nothing to rely on", "[devices]") {
    Stage stage({.faults = {.read_error_ppm = kAlways}});
    const Blocks into(1, 0x55);

    const auto read = stage.read(into, 0);

    REQUIRE(read.error().code == Errc::kIo);
    REQUIRE(into.count(0x55) == 0);
}

TEST_CASE("devices memory disk: a failed write leaves old and new sectors", "[devices]") {
    Stage stage;
    REQUIRE(stage.write(Blocks(8, 0x11), 0).has_value());
    stage.disk->faults().write_error_ppm = kAlways;

    const auto written = stage.write(Blocks(8, 0x22), 0);

    REQUIRE(written.error().code == Errc::kIo);
    const auto left = stage.content(0, 8);
    REQUIRE(left.count(0x11) > 0);
    REQUIRE(left.count(0x22) > 0);
    REQUIRE(left.count(0x11) + left.count(0x22) == left.size_bytes());
}

TEST_CASE("devices memory disk: a failed flush says so", "[devices]") {
    Stage stage({.faults = {.flush_error_ppm = kAlways}});
    REQUIRE(stage.write(Blocks(8, 0x11), 0).has_value());

    const auto flushed = stage.flush();

    REQUIRE(flushed.error().code == Errc::kIo);
    REQUIRE(stage.image.unflushed_bytes() == 0);
}

TEST_CASE("devices memory disk: a bit may be wrong once, or for good", "[devices]") {
    Stage stage;
    REQUIRE(stage.write(Blocks(1, 0x11), 0).has_value());
    stage.disk->faults().read_flip_ppm = kAlways;
    REQUIRE(stage.content(0, 1).count(0x11) == kBlockBytes - 1);
    stage.disk->faults().read_flip_ppm = 0;
    REQUIRE(stage.content(0, 1).all(0x11));
    stage.disk->faults().write_flip_ppm = kAlways;
    REQUIRE(stage.write(Blocks(1, 0x11), 0).has_value());
    stage.disk->faults().write_flip_ppm = 0;

    REQUIRE(stage.content(0, 1).count(0x11) == kBlockBytes - 1);
    REQUIRE(stage.content(0, 1).count(0x11) == kBlockBytes - 1);
}

TEST_CASE("devices memory disk: a write to a hole may find no space", "[devices]") {
    Stage stage;
    REQUIRE(stage.write(Blocks(1, 0x11), 0).has_value());
    stage.disk->faults().no_space_for_holes = true;

    REQUIRE(stage.write(Blocks(1, 0x22), 0).has_value());
    REQUIRE(stage.write(Blocks(2, 0x33), 0).error().code == Errc::kNoSpace);

    REQUIRE(stage.content(0, 1).all(0x22));
    REQUIRE(stage.content(kBlockBytes, 1).all(0));
}

TEST_CASE("devices memory disk: a write may be lost, or land elsewhere", "[devices]") {
    Stage stage;
    stage.disk->faults().lost_write_ppm = kAlways;
    REQUIRE(stage.write(Blocks(1, 0x11), 0).has_value());
    REQUIRE(stage.content(0, kDiskBytes / kBlockBytes).all(0));

    stage.disk->faults().lost_write_ppm = 0;
    stage.disk->faults().misdirected_write_ppm = kAlways;
    REQUIRE(stage.write(Blocks(1, 0x22), 0).has_value());

    REQUIRE(stage.content(0, kDiskBytes / kBlockBytes).count(0x22) == kBlockBytes);
    REQUIRE(stage.content(0, 1).all(0));
}

TEST_CASE("devices memory disk: a flush may be acknowledged, and make nothing durable",
          "[devices]") {
    Stage stage({.faults = {.lost_flush_ppm = kAlways}});
    REQUIRE(stage.write(Blocks(1, 0x11), 0).has_value());

    const auto flushed = stage.flush();

    REQUIRE(flushed.has_value());
    REQUIRE(stage.image.unflushed_bytes() == kBlockBytes);
}

TEST_CASE("devices memory disk: slow operations take longer, and a read's wait ends", "[devices]") {
    Stage stage({.faults = {.slow_ppm = kAlways, .slow_delay = 2s}});
    const Blocks bytes(1);

    const auto read = stage.read(bytes, 0, {.deadline = after(stage.world.now(), 1s)});
    const Instant gave_up = stage.world.now();
    const auto written = stage.write(bytes, 0);

    REQUIRE(read.error().code == Errc::kTimedOut);
    REQUIRE(gave_up == Instant{1s});
    REQUIRE(written.has_value());
    REQUIRE(stage.world.now() >= gave_up + 2s);
}

TEST_CASE("devices memory disk: discarded blocks read as poison", "[devices]") {
    Stage stage;
    REQUIRE(stage.write(Blocks(3, 0x11), 0).has_value());

    const auto discarded = stage.discard(kBlockBytes, kBlockBytes);

    REQUIRE(discarded.has_value());
    REQUIRE(stage.content(0, 1).all(0x11));
    REQUIRE(stage.content(kBlockBytes, 1).all(0xdb));
    REQUIRE(stage.content(2 * kBlockBytes, 1).all(0x11));
}

TEST_CASE("devices memory disk: nothing ends and nothing changes once the power is cut",
          "[devices]") {
    Stage stage;
    REQUIRE(stage.write(Blocks(1, 0x11), 0).has_value());
    const Blocks second(1, 0x22);
    stage.power.cut();

    const auto written = stage.try_write(second, 0);
    const auto read = stage.try_read(second, 0);
    stage.reactor->drop_coroutines();

    REQUIRE_FALSE(written.has_value());
    REQUIRE_FALSE(read.has_value());
    Blocks left(1);
    REQUIRE(stage.image.read(0, left.span()).has_value());
    REQUIRE(left.all(0x11));
}

TEST_CASE("devices memory disk: a crash at any step keeps what a flush acknowledged", "[devices]") {
    const Blocks first(4, 0x11);
    const Blocks second(4, 0x22);
    bool torn = false;
    constexpr std::uint64_t kSteps = 8;  // Two writes and two flushes.
    for (std::uint64_t step = 1; step <= kSteps + 1; ++step) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            Stage stage({.seed = seed}, seed);
            bool told = false;
            stage.power.cut_at(step, [&told] { told = true; });
            int acknowledged = 0;

            const bool ended = stage.world.run(
                *stage.reactor,
                write_flush_write(stage.disk.get(), &first, &second, &acknowledged));
            stage.reactor->drop_coroutines();
            Random random(seed);
            stage.image.crash(random);

            REQUIRE(ended == (step > kSteps));
            REQUIRE(told == (step <= kSteps));
            Blocks left(4);
            REQUIRE(stage.image.read(0, left.span()).has_value());
            const std::size_t all = left.size_bytes();
            REQUIRE(left.count(0) + left.count(0x11) + left.count(0x22) == all);
            if (acknowledged >= 1) REQUIRE(left.count(0) == 0);
            if (acknowledged == 2) REQUIRE(left.all(0x22));
            torn = torn || (left.count(0x22) > 0 && left.count(0x22) < all);
        }
    }
    REQUIRE(torn);
}

TEST_CASE("devices memory disk: the same seed is the same disk", "[devices]") {
    const auto run = [](std::uint64_t seed) {
        Stage stage({.seed = seed, .faults = {.write_error_ppm = kAlways / 2}}, seed);
        std::uint64_t trace = 0;
        for (std::uint64_t i = 0; i < 20; ++i) {
            const auto written = stage.write(Blocks(1, static_cast<std::uint8_t>(i)), 0);
            trace = mix(trace, written.has_value() ? 1 : 0);
            trace = mix(trace, std::to_integer<std::uint64_t>(stage.content(0, 1).span()[600]));
        }
        return mix(trace, stage.world.trace_hash());
    };
    REQUIRE(run(1) == run(1));
    REQUIRE(run(1) != run(2));
}

}  // namespace memory_disk_test
