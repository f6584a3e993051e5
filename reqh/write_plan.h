#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/buffer_pool.h"
#include "core/result.h"
#include "fop/range.h"
#include "store/object_map.h"

namespace fopd::reqh {

// All blocks from the first to the last that a range touches; empty if all ranges are empty.
store::BlockRange blocks_of(std::span<const fop::Range> ranges);

// Maps the bytes of a write to blocks: the touched blocks, by their number in the object, divided
// into chunks that fit into a buffer. Pure.
class WritePlan {
public:
    static constexpr std::size_t kChunkBlocks = core::kBufferBytes / fop::kBlockBytes;

    // A block of the object; its index in the chunk is its position in the buffer.
    struct Block {
        std::uint64_t number = 0;
        std::uint32_t covered_bytes = 0;  // The bytes of it that are written.
        bool checked = false;             // The checksum is set.
        std::uint32_t checksum = 0;

        bool is_partial() const { return covered_bytes < fop::kBlockBytes; }
    };
    // Bytes of one range that are contiguous in the sender's memory and in the buffer.
    struct Fragment {
        std::size_t range = 0;  // Index of the range.
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
        std::uint64_t sender_at = 0;  // In the sender's memory.
        std::size_t buffer_at = 0;
    };

    // kInvalid if the ranges overlap. The ranges must stay valid as long as the plan is used, and
    // have passed fop::check_ranges(). A chunk has at most `chunk_blocks` blocks.
    Result<void> begin(std::span<const fop::Range> ranges, std::size_t chunk_blocks = kChunkBlocks);
    // Advances to the next chunk; false if there is none.
    bool next_chunk();
    bool is_last() const { return at_ == count_; }

    std::span<Block> blocks() { return std::span(blocks_).first(block_count_); }
    std::span<const Fragment> fragments() const {
        return std::span(fragments_).first(fragment_count_);
    }

private:
    void take(const fop::Range& range, std::size_t which, std::size_t first_index,
              std::uint64_t end);

    std::span<const fop::Range> ranges_;
    std::size_t chunk_blocks_ = kChunkBlocks;
    std::array<std::uint8_t, fop::kRangesMax> order_;  // Indexes of non-empty ranges, by offset.
    std::array<std::uint64_t, fop::kRangesMax> sender_at_;
    std::size_t count_ = 0;
    std::size_t at_ = 0;      // Index in order_.
    std::uint64_t next_ = 0;  // Offset in that range.
    std::array<Block, kChunkBlocks> blocks_;
    std::size_t block_count_ = 0;
    std::array<Fragment, fop::kRangesMax> fragments_;
    std::size_t fragment_count_ = 0;
};

// Compares bytes with the checksums of their runs as they arrive; fop/range.h defines the runs.
class RunCheck {
public:
    // Runs end at multiples of the block size; the first byte has offset `basis`.
    RunCheck(std::uint64_t basis, std::uint64_t length, std::span<const std::uint32_t> checksums)
        : basis_(basis), end_(basis + length), next_(basis), checksums_(checksums) {}

    // Adds the next bytes. False if a run that ends in them does not match its checksum.
    bool take(std::span<const std::byte> bytes);

private:
    const std::uint64_t basis_;
    const std::uint64_t end_;
    std::uint64_t next_;
    std::span<const std::uint32_t> checksums_;
    std::uint32_t running_ = 0;
};

}  // namespace fopd::reqh
