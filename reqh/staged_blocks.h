#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reqh/write_plan.h"

namespace fopd::reqh {

// The data that a write has fetched so far, without records: whole blocks on newly allocated disk
// blocks, and bytes of partly written blocks, which stay in memory until the rest of their block
// may be read. Stored in the operation, so that its memory is reused.
struct StagedBlocks {
    // Consecutive blocks.
    struct Run {
        std::uint64_t first = 0;  // In the object.
        std::uint64_t block = 0;  // On the disk.
        std::uint32_t count = 0;
        std::size_t checksums_at = 0;
    };
    // A part of a block.
    struct Part {
        std::uint64_t number = 0;  // The number of the block in the object.
        std::size_t at = 0;        // In the block.
        std::size_t length = 0;
        std::size_t bytes_at = 0;
    };

    std::vector<Run> runs;
    std::vector<std::uint32_t> checksums;
    std::vector<Part> parts;       // At most two per range.
    std::vector<std::byte> bytes;  // The bytes of the parts: at most one block for each part.
    // Partly written blocks whose bytes are no longer in the buffer.
    std::vector<WritePlan::Block> left;

    void clear() {
        runs.clear();
        checksums.clear();
        parts.clear();
        left.clear();
        // Large buffers are freed, because few writes need them.
        bytes.clear();
        if (bytes.capacity() > kBytesKept) bytes.shrink_to_fit();
    }
    std::span<const std::uint32_t> checksums_of(const Run& run) const {
        return std::span(checksums).subspan(run.checksums_at, run.count);
    }
    std::span<const std::byte> bytes_of(const Part& part) const {
        return std::span(bytes).subspan(part.bytes_at, part.length);
    }

private:
    static constexpr std::size_t kBytesKept = 4 * fop::kBlockBytes;
};

}  // namespace fopd::reqh
