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

// Brings the bytes of a write to places of the disk that nobody else knows of, and their records
// into the operation's change: a chunk after the other, through the operation's piece. Of an object
// whose blocks are locked.
class BlockWriter {
public:
    // Both outlive it. Requires: WritePlan::begin() took the ranges.
    BlockWriter(Operation& operation, WritePlan& plan, store::Fid fid, const WriteSource& source)
        : operation_(operation), plan_(plan), fid_(fid), source_(source) {}

    // All but the last writes are done when this has ended.
    Task<Granted<>> stage();
    // Those; in the turn in which the change begins. False when there are none.
    bool start_last_writes();

private:
    // A part of the chunk, and where it goes.
    struct Target {
        std::size_t index = 0;
        store::Place place{};
    };

    Task<Granted<>> read_around();
    bool around_is_intact(std::uint64_t* damaged) const;
    Task<Granted<>> fetch();
    Granted<> check_pieces();
    void take_checksums(const WritePlan::Fragment& fragment);
    Granted<> charge_chunk();
    Task<Granted<>> place_chunk();
    Task<Granted<>> write_out();
    void start_write(const Target& target);

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
    std::array<Target, BlockIo::kRequestsMax> targets_;  // Not written yet.
    std::size_t target_count_ = 0;
    std::optional<PieceCheck> check_;  // Of the range whose fragment was looked at last.
    std::size_t check_range_ = 0;
};

}  // namespace fopd::reqh
