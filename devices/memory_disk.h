#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "core/random.h"
#include "devices/device.h"
#include "devices/disk_image.h"

namespace fopd::devices {

// What goes wrong on a simulated disk, each so many times in a million operations; nothing, unless
// somebody says so.
struct DiskFaults {
    std::uint32_t read_error_ppm = 0;
    std::uint32_t write_error_ppm = 0;        // Each sector is the old or the new one afterwards.
    std::uint32_t flush_error_ppm = 0;        // What it should have covered is durable or lost.
    std::uint32_t lost_flush_ppm = 0;         // Acknowledged, and nothing became durable.
    std::uint32_t read_flip_ppm = 0;          // A bit is wrong on the way; the next read is right.
    std::uint32_t write_flip_ppm = 0;         // A bit is wrong for good.
    std::uint32_t lost_write_ppm = 0;         // Acknowledged, and never done.
    std::uint32_t misdirected_write_ppm = 0;  // Done in a wrong place.
    std::uint32_t slow_ppm = 0;               // Takes `slow_delay` longer.
    Duration slow_delay = 500ms;
    bool no_space_for_holes = false;  // A write where nothing was written finds no space.
    // What an operation takes, evenly distributed.
    Duration delay_min = 10us;
    Duration delay_max = 300us;
};

// The power of one machine, and of all its disks. Once it is cut, what is under way on them never
// ends and what comes later never begins, so nothing more happens to their images; the test then
// drops the machine's coroutines, and crashes the images. A machine that starts again has a new
// one.
//
// A step is a moment at which the power might go and the difference shows: two of each write, flush
// and discard, before it has any effect and after it had all of it, when nobody knows yet.
class Power {
public:
    bool on() const { return on_; }
    std::uint64_t steps() const { return steps_; }

    // Cuts it at step number `step`, counted from 1, and then calls `on_cut`; from within the
    // reactor's turn, so it may take a note, not drop coroutines.
    void cut_at(std::uint64_t step, std::function<void()> on_cut = {}) {
        cut_at_ = step;
        on_cut_ = std::move(on_cut);
    }
    void cut();
    // For the disks.
    void step() {
        if (++steps_ == cut_at_) cut();
    }

private:
    bool on_ = true;
    std::uint64_t steps_ = 0;
    std::uint64_t cut_at_ = std::numeric_limits<std::uint64_t>::max();
    std::function<void()> on_cut_;
};

// What a simulated disk was asked to do; what failed included.
struct DiskCounts {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint64_t flushes = 0;
    std::uint64_t discards = 0;
};

struct MemoryDiskOptions {
    std::string name = "disk";
    std::uint64_t seed = 1;  // Of delays and faults.
    bool rotational = false;
    bool slow_holes = false;
    Power* power = nullptr;  // Of the machine, which the disk does not outlive; never cut if null.
    DiskFaults faults = {};
};

// The disk of the simulated world: a DiskImage plugged into a machine. Operations take their time,
// have their effect somewhere in the middle of it, and fail as they are told. Lives on its reactor;
// the image outlives it.
class MemoryDisk final : public Device {
public:
    MemoryDisk(core::Reactor& reactor, DiskImage& image, MemoryDiskOptions options);

    std::string_view name() const override { return options_.name; }
    const Geometry& geometry() const override { return geometry_; }

    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override;
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override;
    Task<Result<void>> gather(std::span<const core::Buffer> pieces, std::uint64_t offset) override;
    Task<Result<void>> flush() override;
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override;
    Task<Result<Stretch>> find_hole(std::uint64_t offset, std::uint64_t size_bytes) override;

    // May be changed at any time; what has begun keeps the delay it drew.
    DiskFaults& faults() { return options_.faults; }
    const DiskCounts& counts() const { return counts_; }

private:
    struct Delay {
        Duration before;  // Its effect.
        Duration after;
    };
    Delay draw_delay();
    Task<void> spend(Duration span);
    Task<void> step() const;

    Task<Result<void>> put(core::Buffer from, std::uint64_t offset);
    Result<DiskImage::WriteId> store(core::Buffer from, std::uint64_t& offset);
    void tear(core::Buffer from, std::uint64_t offset);
    std::uint64_t elsewhere(std::size_t size_bytes);

    core::Reactor& reactor_;
    DiskImage& image_;
    MemoryDiskOptions options_;
    const Geometry geometry_;
    core::Random random_;
    DiskCounts counts_;
};

}  // namespace fopd::devices
