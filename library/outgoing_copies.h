#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/io.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "library/known_media.h"
#include "objects/stores.h"
#include "store/copy.h"
#include "store/fid.h"
#include "store/tape/member.h"

namespace fopd::library {

// Whether the copies together have all bytes [from, end) of their object. REQUIRES: the copies are
// in ascending order of offset.
bool have_range(std::span<const store::Copy> copies, std::uint64_t from, std::uint64_t end);
// Whether each byte of [from, end) has copies on `wanted` cartridges. The copies are in any order.
bool have_copies(std::span<const store::Copy> copies, std::uint32_t wanted, std::uint64_t from,
                 std::uint64_t end);

// The largest number of pieces of an object. Limited so that the copies from before and after a
// repack can be recorded at the same time. REQUIRES: copies > 0.
std::uint64_t pieces_max(std::uint32_t copies);
// The size of the pieces of an object: `wanted_bytes`, unless there would be too many pieces. Both
// are whole numbers of blocks.
std::uint64_t piece_bytes_of(std::uint64_t object_bytes, std::uint64_t wanted_bytes,
                             std::uint32_t copies);

// Makes a member of a tape file with the fields that describe the object. The fields of the piece
// are not set.
store::Member member_of(store::Fid fid, const store::Object& object,
                        const objects::StoreLayout& layout);

// The content of an object, or of a piece of it, that is to be copied to tape. A snapshot: later
// changes of the object do not affect it.
struct OutgoingCopy {
    // Blocks that are consecutive in the piece and on the disk.
    struct Run {
        std::uint64_t first = 0;  // The first block in the piece.
        std::uint64_t block = 0;  // The first block on the disk.
        std::uint32_t count = 0;
        std::size_t checksums_at = 0;

        std::uint64_t end() const { return first + count; }
    };

    std::uint64_t number = 0;  // Identifies this content in OutgoingCopies.
    store::Member member{};    // Without its checksum.
    std::vector<Run> runs{};   // Ascending; holes are between them.
    std::vector<std::uint32_t> checksums{};

    // The checksums of the blocks of the piece from `first` on.
    void copy_checksums(std::uint64_t first, std::span<std::uint32_t> into) const;
    // The runs with blocks in the range [first, end) of the piece.
    std::span<const Run> runs_in(std::uint64_t first, std::uint64_t end) const;
};

// The contents of this locality's objects that are being copied to tape. Their blocks on the disk
// are not used again before close().
//
// Lives on the reactor of the stores.
class OutgoingCopies {
public:
    // Both arguments outlive this object.
    OutgoingCopies(objects::Stores& stores, const KnownMedia& media);
    OutgoingCopies(const OutgoingCopies&) = delete;
    OutgoingCopies& operator=(const OutgoingCopies&) = delete;
    ~OutgoingCopies();

    struct Wish {
        store::Fid fid{};
        std::uint64_t from = 0;  // The piece begins at this offset or later.
        std::uint64_t piece_bytes = 0;
        // Skips pieces that have so many copies, and pieces that have a copy on the cartridge
        // `vsn`.
        std::uint32_t copies = 1;
        store::VsnText vsn{};
        core::WaitOptions wait{};
    };
    // Opens the first piece that lacks a copy; piece_bytes_of() says where pieces begin. kNotFound:
    // the object is gone, has no bytes on the disk, or needs no copy of any piece on this
    // cartridge. kTimedOut: it is being changed. After success, close() must be called. REQUIRES:
    // piece_bytes is a whole number of blocks.
    Task<Result<OutgoingCopy>> open(Wish wish);
    // Reads bytes of the piece and compares them with their checksums. Memory, offset and size are
    // aligned to blocks, except for the size at the end of the piece. kCorrupt: the bytes differ
    // from their checksums.
    struct Read {
        const OutgoingCopy* copy = nullptr;
        std::uint64_t offset = 0;
        core::Buffer into{};
    };
    Task<Result<void>> read(Read what);
    // Releases the blocks of a piece. REQUIRES: no read of the piece is in progress.
    void close(std::uint64_t number);
    // Closes all pieces. REQUIRES: no read is in progress.
    void close_all();

private:
    class Opened;

    objects::Stores& stores_;
    const KnownMedia& media_;
    std::uint64_t last_number_ = 0;
    std::map<std::uint64_t, std::unique_ptr<Opened>> opened_;
};

}  // namespace fopd::library
