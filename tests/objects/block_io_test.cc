// Goal: what a client waits for goes to a disk before background work does.

#include "objects/block_io.h"

#include <deque>
#include <vector>

#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "tests/catch.h"
#include "tests/devices/blocks.h"

namespace fopd::objects {

namespace {

constexpr io_sched::MediumId kDisk{1};
constexpr std::uint64_t kDiskBlocks = 1024;

using devices::testing::Blocks;

struct Stage {
    explicit Stage()
        : reactor(world.make_reactor()),
          image(kDiskBlocks * kBlock),
          disk(*reactor, image, {.faults = {.delay_min = 1ms, .delay_max = 1ms}}),
          scheduler(*reactor, {.depth_max = 1}) {
        REQUIRE(scheduler.add_device(kDisk, disk).has_value());
    }
    ~Stage() { reactor->drop_coroutines(); }

    // Reads blocks here and there, so that no two of them go as one.
    Task<void> read(io_sched::IoPriority priority, std::size_t count, std::uint64_t from,
                    Instant* ended) {
        BlockIo io;
        io.use({.reactor = reactor.get(),
                .scheduler = &scheduler,
                .medium = kDisk,
                .priority = priority});
        const Blocks into(count);
        for (std::size_t i = 0; i < count; ++i) {
            const core::Buffer block{.data = into.buffer().data + i * kBlock, .size_bytes = kBlock};
            io.read(block, from + 2 * i, {});
        }
        const auto done = co_await io.wait();
        CHECK(done.has_value());
        *ended = reactor->now();
    }

    core::VirtualWorld world{1};
    std::unique_ptr<core::Reactor> reactor;
    devices::DiskImage image;
    devices::MemoryDisk disk;
    io_sched::MainScheduler scheduler;
    core::Gate gate;
};

}  // namespace

TEST_CASE("objects block io: background requests wait for those of the foreground", "[objects]") {
    Stage stage;
    std::vector<Instant> scrubbed(8);
    for (std::size_t i = 0; i < scrubbed.size(); ++i) {
        stage.reactor->spawn(
            stage.gate, stage.read(io_sched::IoPriority::kBackground, 16, 64 * i, &scrubbed[i]));
    }
    stage.world.run_for(5ms);
    Instant read{};
    stage.reactor->spawn(stage.gate, stage.read(io_sched::IoPriority::kForeground, 4, 900, &read));
    stage.world.run_for(1s);

    for (const Instant each : scrubbed) REQUIRE(each > Instant{});
    REQUIRE(read > Instant{});
    CHECK(read < *std::ranges::min_element(scrubbed));
}

}  // namespace fopd::objects
