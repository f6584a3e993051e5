#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fop/bodies.h"
#include "fop/range.h"
#include "objects/object_name.h"
#include "reqh/staged_blocks.h"
#include "reqh/write_plan.h"

namespace fopd::reqh {

// The intermediate results of the steps of a fop. Belongs to the operation, so that the next fop
// reuses its memory, and replies may borrow from it.
struct FopWork {
    struct FoundExtent {
        std::uint64_t first = 0;  // In the object.
        std::uint64_t block = 0;  // On the disk.
        std::uint32_t count = 0;
        std::uint32_t checksums_at = 0;  // In `found_checksums`.

        friend bool operator==(const FoundExtent&, const FoundExtent&) = default;
    };
    // Blocks of the buffer that are read from consecutive ones of the disk.
    struct BlockRun {
        std::uint32_t at = 0;  // In the buffer.
        std::uint32_t count = 0;
        std::uint64_t first = 0;  // In the object.
        std::uint64_t block = 0;  // On the disk.
        std::uint32_t checksums_at = 0;
    };
    // Bytes of one range of a read, and the blocks of the buffer that they are read into.
    struct ReadPart {
        std::size_t range = 0;
        fop::Range bytes{};
        std::uint64_t first = 0;  // Block of the object.
        std::uint32_t count = 0;
        std::uint32_t at = 0;  // Block of the buffer.
    };

    std::vector<FoundExtent> found;
    std::vector<std::uint32_t> found_checksums;
    std::vector<BlockRun> runs;
    std::vector<ReadPart> parts;
    std::vector<std::uint32_t> checksums;  // Borrowed by the reply, as the next two.
    std::vector<fop::Receipt> receipts;
    std::vector<std::uint8_t> states;
    std::string text;
    objects::PoolId pool = 0;  // Of the name in `text`.
    WritePlan plan;
    StagedBlocks staged;
};

}  // namespace fopd::reqh
