#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reqh/write_plan.h"

namespace fopd::reqh {

// What a write has brought so far and no record speaks of yet: whole blocks on places of the disk
// that nobody else knows of, and bytes of blocks that are written in part, which stay in memory
// until the rest of their block may be read. Kept by the operation, so that it need not be made
// again.
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
        std::uint64_t number = 0;  // Of the block, in the object.
        std::size_t at = 0;        // In the block.
        std::size_t length = 0;
        std::size_t bytes_at = 0;
    };

    std::vector<Run> runs;
    std::vector<std::uint32_t> checksums;
    std::vector<Part> parts;       // Two for each range at most.
    std::vector<std::byte> bytes;  // Of the parts: as many blocks at most.
    // The blocks of parts that are in the piece no more.
    std::vector<WritePlan::Block> left;

    void clear() {
        runs.clear();
        checksums.clear();
        parts.clear();
        left.clear();
        // What few writes need is not kept for all.
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
