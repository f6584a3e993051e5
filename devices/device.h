#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/io.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"

namespace fopd::devices {

// All offsets and lengths on a disk are multiples of this.
inline constexpr std::size_t kBlockBytes = 4096;

struct Geometry {
    std::uint64_t size_bytes = 0;  // Whole blocks.
    bool rotational = false;
    bool direct = false;    // I/O bypasses the page cache.
    bool discards = false;  // discard() frees space.
    // The first write to a block is slower than later ones: find_hole() finds unwritten blocks.
    bool slow_holes = false;
};

// Consecutive bytes of a device.
struct Stretch {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;

    friend bool operator==(const Stretch&, const Stretch&) = default;
};

// A disk, or a file used as one: blocks that are read, written and made durable. Lives on one
// reactor. Offsets and lengths are whole blocks, and memory is block-aligned (otherwise, or beyond
// the end: kInvalid). An operation is done completely or returns an error. Concurrent operations
// are not ordered.
class Device {
public:
    static constexpr std::size_t kGatherMax = 32;

    virtual ~Device() = default;

    // The name in the configuration.
    virtual std::string_view name() const = 0;
    virtual const Geometry& geometry() const = 0;

    virtual Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                                    core::WaitOptions wait) = 0;
    // Cannot be cancelled, because an interrupted write leaves unknown content. The kernel bounds
    // its duration. After an error the content of the blocks is undefined.
    virtual Task<Result<void>> write(core::Buffer from, std::uint64_t offset) = 0;
    // Writes several parts of memory to consecutive blocks; the parts and the span must stay
    // until it has ended. A single operation, if the device can do that. REQUIRES: 1 to kGatherMax
    // parts.
    virtual Task<Result<void>> gather(std::span<const core::Buffer> parts, std::uint64_t offset);
    // When this succeeds, every write that completed before the call is durable. After a failure,
    // the durability of all writes since the last successful flush is unknown, and a retry does not
    // restore it.
    virtual Task<Result<void>> flush() = 0;
    // Discards a range. Its content is undefined until it is written again.
    virtual Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) = 0;
    // The first part of the range that was never written, or not since it was discarded; {0, 0} if
    // there is none. A block whose write is in flight may be reported. If the device cannot tell,
    // there are no holes.
    virtual Task<Result<Stretch>> find_hole(std::uint64_t offset, std::uint64_t size_bytes) = 0;
};

// The checks of every device: kInvalid if the range or the memory is not valid for it.
Result<void> check_range(const Geometry& geometry, std::uint64_t offset, std::uint64_t size_bytes);
Result<void> check_io(const Geometry& geometry, const core::Buffer& buffer, std::uint64_t offset);
Result<void> check_io(const Geometry& geometry, std::span<const core::Buffer> parts,
                      std::uint64_t offset);
std::size_t bytes_of(std::span<const core::Buffer> parts);

}  // namespace fopd::devices
