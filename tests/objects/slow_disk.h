#pragma once

#include <cstdint>
#include <memory>

#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "io_sched/disk.h"
#include "io_sched/main_scheduler.h"
#include "objects/block_io.h"
#include "tests/catch.h"
#include "tests/devices/blocks.h"

namespace fopd::objects::testing {

inline constexpr io_sched::MediumId kDisk{1};
inline constexpr std::uint64_t kDiskBlocks = 1024;

// A disk whose operations take 1 ms each and run one at a time, and its scheduler.
struct SlowDisk {
    SlowDisk()
        : reactor(world.make_reactor()),
          image(kDiskBlocks * kBlock),
          disk(*reactor, image, {.faults = {.delay_min = 1ms, .delay_max = 1ms}}),
          scheduler(*reactor, {.depth_max = 1}) {}
    ~SlowDisk() { reactor->drop_coroutines(); }

    // From now on the scheduler serves the disk.
    void serve() { REQUIRE(io_sched::add_disk(scheduler, kDisk, disk).has_value()); }
    // Reads every other block, so that no two reads are joined.
    Task<Result<void>> read(io_sched::IoPriority priority, std::size_t count, std::uint64_t from) {
        BlockIo io;
        io.use({.reactor = reactor.get(),
                .scheduler = &scheduler,
                .medium = kDisk,
                .priority = priority});
        const devices::testing::Blocks into(count);
        for (std::size_t i = 0; i < count; ++i) {
            const core::Buffer block{.data = into.buffer().data + i * kBlock, .size_bytes = kBlock};
            io.read(block, from + 2 * i, {});
        }
        co_return co_await io.wait();
    }

    core::VirtualWorld world{1};
    std::unique_ptr<core::Reactor> reactor;
    devices::DiskImage image;
    devices::MemoryDisk disk;
    io_sched::MainScheduler scheduler;
    core::Gate gate;
};

}  // namespace fopd::objects::testing
