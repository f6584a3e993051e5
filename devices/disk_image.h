#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/result.h"
#include "devices/device.h"

namespace fopd::devices {

// What a simulated disk holds: the media, and the volatile cache before it. It belongs to the test
// and outlives the machine it is plugged into, so it is what a crash leaves behind. The end of a
// process is end_writes(); a loss of power is crash(). Only what was written takes memory;
// the rest reads as zeros. A copy is the disk as it was: put back later, it is an older one.
class DiskImage {
public:
    using WriteId = std::uint64_t;
    // Covers every write that had ended when the point was taken.
    using FlushPoint = std::uint64_t;

    // What discarded blocks read as, so that whoever reads freed space sees it.
    static constexpr std::byte kPoison{0xdb};
    // What the media change as a whole: a crash tears writes between two of them.
    static constexpr std::size_t kSectorBytes = 512;

    // Requires: whole blocks.
    explicit DiskImage(std::uint64_t size_bytes);

    std::uint64_t size_bytes() const { return size_bytes_; }

    // -- for the disk. Offsets and lengths are whole blocks inside the disk --

    // What was last begun to be written. kIo over a block that cannot be read.
    Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;
    // The first part that nothing was written to, or that was discarded.
    Stretch find_hole(std::uint64_t offset, std::uint64_t size_bytes) const;
    // Into the cache. It is read from now on; no flush has to cover it before end_write().
    WriteId begin_write(std::uint64_t offset, std::span<const std::byte> from);
    WriteId begin_discard(std::uint64_t offset, std::uint64_t size_bytes);
    void end_write(WriteId write, std::uint64_t offset, std::uint64_t size_bytes);

    FlushPoint flush_point() { return ++sequence_; }
    // Makes durable all that had ended at `point`.
    void flush(FlushPoint point);
    // Sector by sector, that is durable or gone, and the cache holds it no more: a flush that
    // succeeds later covers nothing of it.
    void fail_flush(FlushPoint point, core::Random& random);

    // -- for the test --

    // The process is gone that wrote, and all it had under way has ended: a flush that the next one
    // begins covers it.
    void end_writes();
    // The power is gone: of each write that no flush has covered, sector by sector, what was there
    // before is left, or what was written. How much is kept, and what is kept or lost as one, is
    // drawn anew each time. Requires: the machine's coroutines are gone.
    void crash(core::Random& random);
    // An orderly end: everything written becomes durable.
    void settle();
    // Bytes in the cache that a crash could lose.
    std::uint64_t unflushed_bytes() const;

    // Changes what is read at one byte, without anybody having written.
    void flip_bit(std::uint64_t offset, unsigned bit);
    // Of what was written these blocks are as if they had been discarded, and that for good:
    // whoever should not need them sees it.
    void poison_if(const std::function<bool(std::uint64_t block)>& is_free);
    // Reading the block fails until it is written again.
    void make_unreadable(std::uint64_t block) { unreadable_.insert(block); }
    // Cuts the end off, or adds zeros. Requires: whole blocks.
    void resize(std::uint64_t size_bytes);

private:
    using Bytes = std::vector<std::byte>;  // One block; empty when it was discarded.
    struct Version {
        WriteId write;
        FlushPoint ended;  // 0 while the write is under way.
        Bytes bytes;
    };
    class Lottery;

    WriteId begin(std::uint64_t offset, std::uint64_t size_bytes, const std::byte* from);
    const Bytes* newest(std::uint64_t block) const;
    Bytes& spell_out(std::uint64_t block);
    void draw(std::uint64_t block, std::span<const Version> versions, const Lottery& lottery);

    std::uint64_t size_bytes_;
    std::uint64_t sequence_ = 0;
    std::map<std::uint64_t, Bytes> durable_;                // By block.
    std::map<std::uint64_t, std::vector<Version>> cached_;  // By block; the oldest first.
    std::set<std::uint64_t> unreadable_;
};

}  // namespace fopd::devices
