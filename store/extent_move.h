#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/object_map.h"
#include "store/record.h"

namespace fopd::store {

// Moves scattered blocks of an object to consecutive ranges: look() finds where they are; the
// caller reads and writes the data; write_records() writes the records of the new ranges.
class ExtentMove {
public:
    static constexpr std::uint32_t kBlocksMax = 64;

    // Blocks that are consecutive in the object and on the disk.
    struct Run {
        std::uint64_t first = 0;  // In the object.
        std::uint64_t block = 0;  // On the disk.
        std::uint32_t at = 0;     // The number of blocks of the range before it.
        std::uint32_t count = 0;
    };

    // Finds the blocks in a range of at most kBlocksMax blocks of an object; none in a released
    // one.
    Result<void> look(ObjectMap& map, Fid fid, BlockRange range);
    std::uint32_t count() const { return count_; }
    std::span<const Run> runs() const { return std::span(runs_).first(run_count_); }
    // How many neighbours in the object are not neighbours on the disk.
    std::uint32_t breaks() const { return breaks_; }
    // Whether `bytes` has the checksums of the blocks, in their order.
    bool is_intact(std::span<const std::byte> bytes) const;

    // Whether the range still is as look() found it.
    Result<bool> is_unchanged(ObjectMap& map) const;
    // Writes records that put the blocks, in order, into these ranges. REQUIRES: as many blocks.
    void write_records(std::span<const DiskRange> ranges, RecordWriter& records) const;

private:
    void add(const Extent& extent);

    Fid fid_{};
    BlockRange range_{};
    std::array<Run, kBlocksMax> runs_;
    std::array<std::uint32_t, kBlocksMax> checksums_;
    std::size_t run_count_ = 0;
    std::uint32_t count_ = 0;
    std::uint32_t breaks_ = 0;
};

}  // namespace fopd::store
