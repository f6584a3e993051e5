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

// The blocks from the first to the last that any of the ranges touches; of none when all are empty.
store::BlockRange blocks_of(std::span<const fop::Range> ranges);

// How the bytes of a write become blocks: the blocks it touches, by their number in the object, cut
// into chunks that fit into a piece of buffer. Pure.
class WritePlan {
public:
    static constexpr std::size_t kChunkBlocks = core::kBufferBytes / fop::kBlockBytes;

    // A block of the object, which lies in the piece where it stands in the chunk.
    struct Block {
        std::uint64_t number = 0;
        std::uint32_t covered_bytes = 0;  // With bytes of the write.
        bool checked = false;             // The checksum is there.
        std::uint32_t checksum = 0;

        bool is_partial() const { return covered_bytes < fop::kBlockBytes; }
    };
    // Bytes of one range that lie one behind the other in the memory of the sender, and in the
    // piece.
    struct Fragment {
        std::size_t range = 0;  // Which of the ranges.
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
        std::uint64_t sender_at = 0;  // In the sender's memory.
        std::size_t piece_at = 0;
    };

    // kInvalid when the ranges overlap. They are kept until the end of the plan;
    // fop::check_ranges() took them. A chunk has so many blocks at most.
    Result<void> begin(std::span<const fop::Range> ranges, std::size_t chunk_blocks = kChunkBlocks);
    // The next chunk; false when there is none.
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
    std::array<std::uint8_t, fop::kRangesMax> order_;  // Of those that are not empty, by offset.
    std::array<std::uint64_t, fop::kRangesMax> sender_at_;
    std::size_t count_ = 0;
    std::size_t at_ = 0;      // In the order.
    std::uint64_t next_ = 0;  // In that range.
    std::array<Block, kChunkBlocks> blocks_;
    std::size_t block_count_ = 0;
    std::array<Fragment, fop::kRangesMax> fragments_;
    std::size_t fragment_count_ = 0;
};

// Compares bytes with the checksums of their pieces, as they come: fop/range.h has the pieces.
class PieceCheck {
public:
    // Pieces end where a multiple of the block size is reached from `basis` on.
    PieceCheck(std::uint64_t basis, std::uint64_t length, std::span<const std::uint32_t> checksums)
        : basis_(basis), end_(basis + length), next_(basis), checksums_(checksums) {}

    // The bytes that follow. False when a piece that ends in them is not what it should be.
    bool take(std::span<const std::byte> bytes);

private:
    const std::uint64_t basis_;
    const std::uint64_t end_;
    std::uint64_t next_;
    std::span<const std::uint32_t> checksums_;
    std::uint32_t running_ = 0;
};

}  // namespace fopd::reqh
