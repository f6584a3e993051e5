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

// Blocks of an object that are to lie side by side on their disk: where they lie, what they hold,
// and the records that say that they lie elsewhere.
class ExtentMove {
public:
    static constexpr std::uint32_t kBlocksMax = 64;

    // Blocks that follow each other in the object and on the disk.
    struct Run {
        std::uint64_t first = 0;  // In the object.
        std::uint64_t block = 0;  // On the disk.
        std::uint32_t at = 0;     // How many blocks come before it.
        std::uint32_t count = 0;
    };

    // What is in a range of at most kBlocksMax blocks of an object.
    Result<void> look(ObjectMap& map, Fid fid, BlockRange range);
    std::uint32_t count() const { return count_; }
    std::span<const Run> runs() const { return std::span(runs_).first(run_count_); }
    // How often neighbours in the object are none on the disk.
    std::uint32_t breaks() const { return breaks_; }
    // Whether these are the blocks, one behind the other.
    bool is_intact(std::span<const std::byte> bytes) const;

    // Whether all still is as it was found.
    Result<bool> is_unchanged(ObjectMap& map) const;
    // That they lie in these places, one behind the other. Requires: as many blocks.
    void write_records(std::span<const Place> places, RecordWriter& records) const;

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
