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

// The contents of a simulated disk: the media, and the volatile cache in front of them. Owned by
// the test; outlives the machine it is attached to, so it keeps the data over a crash. end_writes()
// simulates the end of a process, crash() a loss of power. Only written blocks take memory; others
// read as zeros. A copy is a snapshot of the disk, to which a test can go back.
class DiskImage {
public:
    using WriteId = std::uint64_t;
    // Covers every write that had ended when the flush point was taken.
    using FlushPoint = std::uint64_t;

    // Discarded blocks read as this, so that a reader of freed space notices.
    static constexpr std::byte kPoison{0xdb};
    // The unit that the media write atomically: a crash tears writes between sectors.
    static constexpr std::size_t kSectorBytes = 512;

    // REQUIRES: whole blocks.
    explicit DiskImage(std::uint64_t size_bytes);

    std::uint64_t size_bytes() const { return size_bytes_; }

    // -- for the disk. Offsets and lengths are whole blocks inside the disk --

    // Reads the newest data, including writes in flight. kIo if a block is unreadable.
    Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;
    // The first part that was never written, or was discarded.
    Stretch find_hole(std::uint64_t offset, std::uint64_t size_bytes) const;
    // Writes into the cache. Reads see it from now on; no flush has to cover it before end_write().
    WriteId begin_write(std::uint64_t offset, std::span<const std::byte> from);
    WriteId begin_discard(std::uint64_t offset, std::uint64_t size_bytes);
    void end_write(WriteId write, std::uint64_t offset, std::uint64_t size_bytes);

    FlushPoint flush_point() { return ++sequence_; }
    // Makes all writes durable that had ended at `point`.
    void flush(FlushPoint point);
    // Each sector that the flush should cover becomes durable or is lost, and leaves the cache: a
    // later successful flush does not cover it.
    void fail_flush(FlushPoint point, core::Random& random);

    // -- for the test --

    // The writing process has ended, and so have all its writes: the next flush covers them.
    void end_writes();
    // Power loss: of each write that no flush has covered, each sector keeps its old or its new
    // contents. How much survives, and which parts survive or are lost together, is drawn anew each
    // time. REQUIRES: the machine's coroutines were destroyed.
    void crash(core::Random& random);
    // An orderly end: all writes become durable.
    void settle();
    // Bytes in the cache that a crash could lose.
    std::uint64_t unflushed_bytes() const;

    // Changes a bit without a write.
    void flip_bit(std::uint64_t offset, unsigned bit);
    // Makes written blocks that satisfy `is_free` look discarded, permanently: a reader that should
    // not need them notices.
    void poison_if(const std::function<bool(std::uint64_t block)>& is_free);
    // Reading the block fails until it is written again.
    void make_unreadable(std::uint64_t block) { unreadable_.insert(block); }
    // Truncates, or adds zeros. REQUIRES: whole blocks.
    void resize(std::uint64_t size_bytes);

private:
    using Bytes = std::vector<std::byte>;  // One block; empty if discarded.
    struct Version {
        WriteId write;
        FlushPoint ended;  // 0 while the write is in flight.
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
