#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/io.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/tape/tape_drive.h"
#include "store/aligned_memory.h"
#include "store/tape/tape_file.h"

namespace fopd::store {

// A block that is no farther ahead is reached by reading on. Drives read so much in 0.7 s (LTO-9)
// to 1.7 s (LTO-6); the shortest locate takes 4 s.
inline constexpr std::uint64_t kTapeReadOnBytes = 256UL << 20;

// Reads labels and payloads of a tape through memory for one block. Uses the drive alone while one
// of its calls runs; the drive outlives it.
class BlockReader {
public:
    explicit BlockReader(devices::TapeDrive& drive) : drive_(drive) {}

    // kNoSpace: no memory. Called before all others; more calls do nothing.
    Result<void> allocate();

    // Moves to a block. kCorrupt: the data end before it.
    Task<Result<void>> locate(std::uint64_t block);
    // Moves to a block; reads on if it is near. kCorrupt: the data end before it.
    Task<Result<void>> go_to(std::uint64_t block);

    struct Block {
        devices::TapeMark met = devices::TapeMark::kEndOfData;
        std::span<const std::byte> bytes{};  // Valid until the next call.
    };
    // Reads the next block, filemark or end of data.
    Task<Result<Block>> next();
    // Whether the last next() has met a block that is larger than any that is written.
    bool too_large() const { return too_large_; }

    // Reads the three labels before or behind a file, and the filemark that follows them. Before
    // file 1 VOL1 may come first. kCorrupt: there are no such labels.
    Task<Result<FileLabels>> labels(FileLabels::Side side);

    // The payload of a file, as one sequence of bytes.
    // Begins with the data block at which the tape is.
    void begin_payload(std::uint64_t first_block);
    // The position in the payload.
    std::uint64_t position() const { return block_index_ * kTapeDataBytes + at_; }
    // Goes on at `position`, which may be in a block far away. REQUIRES: a payload has begun.
    Task<Result<void>> seek(std::uint64_t position);
    // Fills `into`. kCorrupt: the payload ends before that.
    Task<Result<void>> take(std::span<std::byte> into);
    // The bytes that follow, at most `size_max`, up to the end of their block; valid until the next
    // call. kCorrupt: the payload ends here.
    Task<Result<std::span<const std::byte>>> next_bytes(std::uint64_t size_max);
    // From the payload to behind the filemark that ends it. Counts the blocks of the payload.
    Task<Result<std::uint64_t>> end_payload();

private:
    Task<Result<void>> load();

    devices::TapeDrive& drive_;
    AlignedMemory memory_;
    std::uint64_t first_block_ = 0;
    std::uint64_t block_index_ = 0;  // In the payload, of the block in memory, or the next one.
    bool too_large_ = false;
    bool loaded_ = false;
    std::size_t loaded_bytes_ = 0;
    std::size_t at_ = 0;  // In the block.
};

}  // namespace fopd::store
