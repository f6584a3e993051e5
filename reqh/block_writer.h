#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/task.h"
#include "fop/bodies.h"
#include "reqh/operation.h"
#include "reqh/refusal.h"
#include "reqh/staged_blocks.h"
#include "reqh/write_plan.h"
#include "store/fid.h"

namespace fopd::reqh {

// The source of a write's bytes: the payload of the request, or the client's memory.
struct WriteSource {
    std::span<const fop::Range> ranges{};
    std::span<const std::uint32_t> checksums{};
    const fop::SealedDescriptor* memory = nullptr;
    // Whether checksummed runs are counted from the start of the data, not from the range's offset.
    // Only for a single range.
    bool runs_from_zero = false;
};

// The lock of a write of these blocks. A write of no blocks changes nothing, so it only looks.
inline objects::LockRequest lock_for_write(store::Fid fid, store::BlockRange blocks) {
    if (blocks.count == 0) return {.fid = fid, .range = objects::kAttributes};
    return {.fid = fid, .range = blocks, .mode = objects::LockMode::kExclusive};
}

// Fetches the bytes of a write, writes them to newly allocated blocks of the disk, chunk by chunk
// through the operation's buffer, and adds their records to the operation's change.
//
// First bring(), which waits for the client and holds no lock; then, under the lock of the blocks,
// write_chunks(), which waits only for the disk; then the change begins.
class BlockWriter {
public:
    // `operation` and `plan` outlive it. REQUIRES: WritePlan::begin() accepted the ranges.
    BlockWriter(Operation& operation, WritePlan& plan, store::Fid fid, const WriteSource& source)
        : operation_(operation), plan_(plan), fid_(fid), source_(source) {}

    // Returns when all bytes have arrived from the client. Returns the reply if the same request
    // arrived again meanwhile and was executed. REQUIRES: no lock is held.
    Task<Granted<std::optional<fop::Reply>>> bring();
    // Moves the fetched bytes to the new offset of the source's only range. REQUIRES: bring() has
    // ended; runs_from_zero.
    Task<Granted<>> move();
    // On return, all writes except the last ones have completed, and the records are in the change.
    // REQUIRES: bring() has ended; the object is loaded, and its blocks are locked.
    Task<Granted<>> write_chunks();
    // Starts the remaining writes; called in the reactor turn in which the change begins. False if
    // there are none.
    bool start_last_writes();

private:
    // Blocks of the chunk, and their location on the disk.
    struct Target {
        std::size_t index = 0;
        store::DiskRange on_disk{};
    };

    Task<Granted<>> bring_chunks();
    Task<Granted<>> fetch();
    Granted<> check_runs();
    // Why the bytes do not match their checksums.
    Task<Granted<>> explain_mismatch(Refusal mismatch);
    void take_checksums(const WritePlan::Fragment& fragment);
    void compute_checksums();
    void keep_parts(const WritePlan::Fragment& fragment);

    bool move_in_buffer();
    Task<Granted<>> move_on_disk();
    Task<Granted<>> fetch_brought(WritePlan::Fragment fragment);

    Task<Granted<>> complete(std::span<WritePlan::Block> blocks);
    Task<Granted<>> read_around(std::span<WritePlan::Block> blocks);
    bool around_is_intact(std::span<WritePlan::Block> blocks, std::uint64_t* damaged) const;
    void put_parts(std::span<WritePlan::Block> blocks);
    Task<Granted<>> allocate_blocks(std::span<const WritePlan::Block> blocks);
    Task<Granted<>> write_out();
    void start_write(const Target& target);
    Granted<> record();

    StagedBlocks& staged() const { return operation_.work().staged; }
    core::Buffer part_of_buffer(std::size_t at, std::size_t size_bytes) const;
    std::span<std::byte> block_bytes(std::size_t index) const {
        return operation_.buffer().span().subspan(index * fop::kBlockBytes, fop::kBlockBytes);
    }
    // The checksums of the runs of one range.
    std::span<const std::uint32_t> checksums_of(std::size_t range) const;

    Operation& operation_;
    WritePlan& plan_;
    const store::Fid fid_;
    const WriteSource source_;
    std::uint64_t brought_offset_ = 0;  // The first range's offset during bring().
    // The data at its first location, while it is moved to another offset; otherwise null.
    const StagedBlocks* brought_ = nullptr;
    // Added to each block number: the difference between the final and the original offset, in
    // blocks.
    std::uint64_t shift_ = 0;
    std::array<Target, objects::BlockIo::kRequestsMax> targets_;  // Writes not started yet.
    std::size_t target_count_ = 0;
    std::optional<RunCheck> check_;  // For the range of the latest fragment.
    std::size_t check_range_ = 0;
};

}  // namespace fopd::reqh
