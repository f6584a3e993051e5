#pragma once

#include <cstdint>
#include <optional>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/device.h"
#include "store/aligned_memory.h"
#include "store/log_entry.h"
#include "store/log_space.h"
#include "store/log_visitor.h"
#include "store/schema.h"

namespace fopd::store {

// The offset on the disk of a position in the log.
std::uint64_t byte_offset(LogPosition at, std::uint32_t segment_blocks);

// Reads entries of a log. The first read of a segment is a few blocks, because many segments have
// few entries; later ones are up to a mebibyte. Lives on the device's reactor; one call at a time.
class EntryReader {
public:
    struct Options {
        LogId id{};
        Schema schema{};
        std::uint32_t segment_blocks = 0;
        std::uint32_t entry_blocks_max = 0;
    };
    struct Found {
        EntryHeader header;
        std::uint32_t blocks = 0;
        LogEntry entry;  // Valid until the next call.
    };

    // The device outlives the reader.
    EntryReader(devices::Device& device, const Options& options)
        : device_(&device), options_(options), upgrade_(options.schema) {}
    Result<void> allocate();
    // Later reads use `device`, with the deadline and the cancel source of `wait`. The device
    // and the source outlive the reader.
    void read_from(devices::Device& device, core::WaitOptions wait) {
        device_ = &device;
        wait_ = wait;
    }

    // The entry that begins at `position`; nothing if no complete entry begins there. Errors are
    // those of the device; after one it may be called again.
    Task<Result<std::optional<Found>>> at(LogPosition position);

private:
    // Reads at least `at_least` blocks from `position` on into the window.
    Task<Result<void>> load(LogPosition position, std::uint32_t at_least);
    // The part of the window from `position` on; empty if `position` is not in the window.
    std::span<const std::byte> loaded_from(LogPosition position) const;

    devices::Device* device_;
    core::WaitOptions wait_;  // No limit at first: the kernel bounds the time.
    const Options options_;
    AlignedMemory memory_;
    SchemaUpgrade upgrade_;
    LogPosition window_;
    std::uint32_t window_blocks_ = 0;
};

}  // namespace fopd::store
