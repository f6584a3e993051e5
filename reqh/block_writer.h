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

// Where the bytes of a write come from: the payload of the request, or memory of the client.
struct WriteSource {
    std::span<const fop::Range> ranges{};
    std::span<const std::uint32_t> checksums{};
    const fop::SealedDescriptor* memory = nullptr;
    // Where the pieces of the checksums begin is counted from there, not from the range's offset.
    // Only for one range.
    bool pieces_from_zero = false;
};

// Brings the bytes of a write to places of the disk that nobody else knows of, a chunk after the
// other through the operation's piece, and their records into the operation's change.
//
// First bring(), which waits for the client and needs no lock; then, under the lock of the blocks,
// place(), which waits for nobody but the disk; then the change begins.
class BlockWriter {
public:
    // Both outlive it. Requires: WritePlan::begin() took the ranges.
    BlockWriter(Operation& operation, WritePlan& plan, store::Fid fid, const WriteSource& source)
        : operation_(operation), plan_(plan), fid_(fid), source_(source) {}

    // Returns when all bytes have arrived from the client; with the reply when the same request has
    // come again meanwhile, and was made. Requires: no lock is held.
    Task<Granted<std::optional<fop::Reply>>> bring();
    // The one range of the source has another offset by now; what was brought goes there. Requires:
    // bring() has ended, pieces_from_zero.
    Task<Granted<>> move();
    // All but the last writes are done when this has ended, and the records are in the change.
    // Requires: bring() has ended; the object is loaded, and its blocks are locked.
    Task<Granted<>> place();
    // The last writes; in the turn in which the change begins. False when there are none.
    bool start_last_writes();

private:
    // A part of the chunk, and where it goes.
    struct Target {
        std::size_t index = 0;
        store::Place place{};
    };

    Task<Granted<>> bring_chunks();
    Task<Granted<>> fetch();
    Granted<> check_pieces();
    void take_checksums(const WritePlan::Fragment& fragment);
    void compute_checksums();
    void keep_parts(const WritePlan::Fragment& fragment);

    bool move_in_piece();
    Task<Granted<>> move_on_disk();
    Task<Granted<>> fetch_brought(WritePlan::Fragment fragment);

    Task<Granted<>> complete(std::span<WritePlan::Block> blocks);
    Task<Granted<>> read_around(std::span<WritePlan::Block> blocks);
    bool around_is_intact(std::span<WritePlan::Block> blocks, std::uint64_t* damaged) const;
    void put_parts(std::span<WritePlan::Block> blocks);
    Task<Granted<>> place_blocks(std::span<const WritePlan::Block> blocks);
    Task<Granted<>> write_out();
    void start_write(const Target& target);
    Granted<> record();

    StagedBlocks& staged() const { return operation_.work().staged; }
    core::Buffer part_of_piece(std::size_t at, std::size_t size_bytes) const;
    std::span<std::byte> block_bytes(std::size_t index) const {
        return operation_.piece().span().subspan(index * fop::kBlockBytes, fop::kBlockBytes);
    }
    // Those of the pieces of one range.
    std::span<const std::uint32_t> checksums_of(std::size_t range) const;

    Operation& operation_;
    WritePlan& plan_;
    const store::Fid fid_;
    const WriteSource source_;
    std::uint64_t brought_offset_ = 0;  // What the first range's was when it was brought.
    // What was brought, while it is moved to another offset.
    const StagedBlocks* brought_ = nullptr;
    // Added to the number of each block: it was brought for so many blocks before.
    std::uint64_t shift_ = 0;
    std::array<Target, objects::BlockIo::kRequestsMax> targets_;  // Not written yet.
    std::size_t target_count_ = 0;
    std::optional<PieceCheck> check_;  // Of the range whose fragment was looked at last.
    std::size_t check_range_ = 0;
};

}  // namespace fopd::reqh
