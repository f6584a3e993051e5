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

// Fault rates of a simulated disk, in faults per million operations; none by default.
struct DiskFaults {
    std::uint32_t read_error_ppm = 0;
    std::uint32_t write_error_ppm = 0;  // Each sector has its old or new contents afterwards.
    // Each write that the failed flush should cover is durable or lost.
    std::uint32_t flush_error_ppm = 0;
    std::uint32_t lost_flush_ppm = 0;         // Acknowledged, and nothing became durable.
    std::uint32_t read_flip_ppm = 0;          // A bit is wrong in transit; the next read is right.
    std::uint32_t write_flip_ppm = 0;         // A bit is wrong permanently.
    std::uint32_t lost_write_ppm = 0;         // Acknowledged, but not done.
    std::uint32_t misdirected_write_ppm = 0;  // Written to a wrong block.
    std::uint32_t slow_ppm = 0;               // Takes `slow_delay` longer.
    Duration slow_delay = 500ms;
    bool no_space_for_holes = false;  // A write to a hole fails for lack of space.
    // Duration of an operation, evenly distributed.
    Duration delay_min = 10us;
    Duration delay_max = 300us;
};

// The power supply of a machine and all its disks. Once it is cut, operations in flight never end
// and later ones never begin, so the images do not change any more; the test then destroys the
// machine's coroutines, and crashes the images. A restarted machine gets a new Power.
//
// A step is a moment at which a power cut makes a difference: two for each write, flush and
// discard, one before it has any effect, and one after its full effect but before its completion.
class Power {
public:
    bool on() const { return on_; }
    std::uint64_t steps() const { return steps_; }

    // Cuts the power at step number `step`, counted from 1, and then calls `on_cut`. This is called
    // within a reactor turn, so it must not destroy coroutines.
    void cut_at(std::uint64_t step, std::function<void()> on_cut = {}) {
        cut_at_ = step;
        on_cut_ = std::move(on_cut);
    }
    void cut();
    // Called by the disks at each step. Cuts the power if this is the step at which it was to be
    // cut.
    void step() {
        if (++steps_ == cut_at_) cut();
    }

private:
    bool on_ = true;
    std::uint64_t steps_ = 0;
    std::uint64_t cut_at_ = std::numeric_limits<std::uint64_t>::max();
    std::function<void()> on_cut_;
};

// The operations requested of a simulated disk, including failed ones.
struct DiskCounts {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint64_t flushes = 0;
    std::uint64_t discards = 0;
};

struct MemoryDiskOptions {
    std::string name = "disk";
    std::uint64_t seed = 1;  // For delays and faults.
    bool rotational = false;
    bool slow_holes = false;
    Power* power = nullptr;  // The machine's, which outlives the disk. Null: never cut.
    DiskFaults faults = {};
};

// The disk of the simulated world: a DiskImage attached to a machine. An operation takes time, has
// its effect at some moment within it, and fails as configured. Lives on its reactor; the image
// outlives it.
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

    // May be changed at any time; an operation in flight keeps the delay it drew.
    DiskFaults& faults() { return options_.faults; }
    const DiskCounts& counts() const { return counts_; }

private:
    struct Delay {
        Duration before;  // Before its effect.
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
