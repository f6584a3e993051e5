#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "store/check_report.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/volume_view.h"

namespace fopd::store {

// An extent that a check has seen, without its checksums.
struct SeenExtent {
    Fid fid{};
    std::uint64_t first = 0;
    std::uint64_t block = 0;
    std::uint32_t count = 0;

    std::uint64_t end() const { return first + count; }
    DiskRange range() const { return {.block = block, .count = count}; }
};

// Blocks that more than one extent seems to have. A first walk through all extents finds the
// blocks, a second one the extents that have them; whether they still do is looked up at the end.
class SharedBlocks {
public:
    // First walk: an extent has a block that an earlier one had.
    void add(std::uint64_t block);
    // Between the walks.
    void join();
    // Second walk: notes an extent if it has one of these blocks.
    void note_holder(const SeenExtent& extent);
    // Called after the second walk.
    void sort_holders();

    const std::vector<DiskRange>& ranges() const { return ranges_; }
    // Looks up, in one turn, whether two extents have a block of the range, and returns a finding
    // if so.
    Result<std::optional<CheckFinding>> judge(DiskRange range, const VolumeView& volume) const;

private:
    std::vector<DiskRange> ranges_;
    std::vector<SeenExtent> holders_;
};

}  // namespace fopd::store
