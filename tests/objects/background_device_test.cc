// Goal: bulk work that nobody waits for goes to a disk after what clients wait for, and is done in
// any case, whether the scheduler serves the disk or not.

#include "objects/background_device.h"

#include <optional>

#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "io_sched/io_device.h"
#include "objects/block_io.h"
#include "tests/catch.h"
#include "tests/devices/blocks.h"

namespace fopd::objects {

namespace {

constexpr io_sched::MediumId kSlowDisk{2};
constexpr std::uint64_t kSlowDiskBlocks = 1024;

using devices::testing::Blocks;

struct SlowDisk {
    SlowDisk()
        : reactor(world.make_reactor()),
          image(kSlowDiskBlocks * kBlock),
          disk(*reactor, image, {.faults = {.delay_min = 1ms, .delay_max = 1ms}}),
          scheduler(*reactor, {.depth_max = 1}),
          background(
              {.reactor = *reactor, .device = disk, .scheduler = scheduler, .medium = kSlowDisk}) {}
    ~SlowDisk() { reactor->drop_coroutines(); }

    void serve() { REQUIRE(scheduler.add_device(kSlowDisk, disk).has_value()); }
    Task<void> write(std::uint64_t block, std::optional<Instant>* ended) {
        Blocks zeros(1);
        const auto done = co_await background.write(zeros.buffer(), block * kBlock);
        CHECK(done.has_value());
        *ended = reactor->now();
    }
    Task<void> discard(std::uint64_t block, std::optional<Instant>* ended) {
        const auto done = co_await background.discard(block * kBlock, kBlock);
        CHECK(done.has_value());
        *ended = reactor->now();
    }
    // Of blocks apart from each other, so that no two are joined.
    Task<void> read(std::size_t count, std::optional<Instant>* ended) {
        BlockIo io;
        io.use({.reactor = reactor.get(), .scheduler = &scheduler, .medium = kSlowDisk});
        Blocks into(count);
        for (std::size_t i = 0; i < count; ++i) {
            const core::Buffer block{.data = into.buffer().data + i * kBlock, .size_bytes = kBlock};
            io.read(block, 2 * i, {});
        }
        // Fails if the disk is taken away.
        [[maybe_unused]] const auto done = co_await io.wait();
        *ended = reactor->now();
    }
    Task<void> remove() {
        const auto removed = co_await scheduler.remove_device(kSlowDisk);
        CHECK(removed.has_value());
    }

    core::VirtualWorld world{1};
    std::unique_ptr<core::Reactor> reactor;
    devices::DiskImage image;
    devices::MemoryDisk disk;
    io_sched::MainScheduler scheduler;
    BackgroundDevice background;
    core::Gate gate;
};

}  // namespace

TEST_CASE("objects background device: zeros wait for what clients read", "[objects]") {
    SlowDisk stage;
    stage.serve();
    std::optional<Instant> read;
    std::optional<Instant> wrote;
    std::optional<Instant> discarded;
    stage.reactor->spawn(stage.gate, stage.read(4, &read));
    stage.reactor->spawn(stage.gate, stage.write(500, &wrote));
    stage.reactor->spawn(stage.gate, stage.discard(600, &discarded));
    stage.world.run_for(1s);

    REQUIRE(read.has_value());
    REQUIRE(wrote.has_value());
    REQUIRE(discarded.has_value());
    CHECK(*read < *wrote);
    CHECK(stage.disk.counts().discards == 1);
}

TEST_CASE("objects background device: they are done while the scheduler has no such disk",
          "[objects]") {
    SlowDisk stage;
    std::optional<Instant> wrote;
    std::optional<Instant> discarded;
    stage.reactor->spawn(stage.gate, stage.write(500, &wrote));
    stage.reactor->spawn(stage.gate, stage.discard(600, &discarded));
    stage.world.run_for(1s);

    CHECK(wrote.has_value());
    CHECK(discarded.has_value());
}

TEST_CASE("objects background device: what waits when the disk is taken away is done",
          "[objects]") {
    SlowDisk stage;
    stage.serve();
    std::optional<Instant> read;
    std::optional<Instant> wrote;
    std::optional<Instant> discarded;
    stage.reactor->spawn(stage.gate, stage.read(4, &read));
    stage.reactor->spawn(stage.gate, stage.write(500, &wrote));
    stage.reactor->spawn(stage.gate, stage.discard(600, &discarded));
    stage.world.run_for(100us);
    REQUIRE_FALSE(wrote.has_value());
    stage.reactor->spawn(stage.gate, stage.remove());
    stage.world.run_for(1s);

    CHECK(wrote.has_value());
    CHECK(discarded.has_value());
    CHECK(stage.disk.counts().writes == 1);
    CHECK(stage.disk.counts().discards == 1);
}

}  // namespace fopd::objects
