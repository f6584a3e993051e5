#pragma once

#include <cstdint>
#include <string>

#include "core/random.h"
#include "devices/device.h"
#include "devices/disk_image.h"
#include "devices/power.h"

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
    Task<Result<void>> gather(std::span<const core::Buffer> parts, std::uint64_t offset) override;
    Task<Result<void>> flush() override;
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override;
    Task<Result<Stretch>> find_hole(std::uint64_t offset, std::uint64_t size_bytes) override;

    // May be changed at any time; an operation in flight keeps the delay it drew.
    DiskFaults& faults() { return options_.faults; }
    const DiskCounts& counts() const { return counts_; }

private:
    struct Delay {
        Duration before;  // The delay before its effect.
        Duration after;
    };
    Delay draw_delay();
    Task<void> spend(Duration span);

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
