#include "store/shared_blocks.h"

#include <algorithm>

namespace fopd::store {

namespace {

// At most so many ranges are reported, for a disk that is damaged as a whole.
constexpr std::size_t kRangesMax = 4096;
constexpr std::size_t kHoldersMax = 65'536;

bool comes_first(const DiskRange& a, const DiskRange& b) {
    return a.block < b.block;
}

// Whether the object still has the block where the extent had it.
Result<bool> still_has(const VolumeView& volume, const SeenExtent& extent, std::uint64_t block) {
    const std::uint64_t at = extent.first + (block - extent.block);
    ObjectMap::Extents extents = volume.extents(extent.fid, {.first = at, .count = 1});
    const auto found = extents.next();
    if (!found) return std::unexpected(found.error());
    return found->has_value() && (*found)->block == block;
}

}  // namespace

void SharedBlocks::add(std::uint64_t block) {
    if (!ranges_.empty() && ranges_.back().block + ranges_.back().count == block) {
        ++ranges_.back().count;
    } else if (ranges_.size() < kRangesMax) {
        ranges_.push_back({.block = block, .count = 1});
    }
}

// A block that three extents have is in two of the ranges.
void SharedBlocks::join() {
    std::ranges::sort(ranges_, comes_first);
    std::vector<DiskRange> joined;
    for (const DiskRange& range : ranges_) {
        const std::uint64_t end = joined.empty() ? 0 : joined.back().block + joined.back().count;
        if (joined.empty() || range.block > end) {
            joined.push_back(range);
        } else if (range.block + range.count > end) {
            joined.back().count += static_cast<std::uint32_t>(range.block + range.count - end);
        }
    }
    ranges_ = std::move(joined);
}

void SharedBlocks::note_holder(const SeenExtent& extent) {
    const auto range =
        std::ranges::lower_bound(ranges_, extent.block, {},
                                 [](const DiskRange& each) { return each.block + each.count - 1; });
    if (range == ranges_.end() || range->block >= extent.block + extent.count) return;
    if (holders_.size() < kHoldersMax) holders_.push_back(extent);
}

void SharedBlocks::sort_holders() {
    std::ranges::sort(holders_, {}, &SeenExtent::block);
}

Result<std::optional<CheckFinding>> SharedBlocks::judge(DiskRange range,
                                                        const VolumeView& volume) const {
    std::uint64_t shared = 0;
    std::optional<CheckFinding> finding;
    // An extent that has a block begins at most so many blocks before it.
    const std::uint64_t reach = kExtentBlocksMax - 1;
    for (std::uint64_t block = range.block; block < range.block + range.count; ++block) {
        const SeenExtent* first = nullptr;
        auto holder = std::ranges::lower_bound(holders_, block - std::min(block, reach), {},
                                               &SeenExtent::block);
        for (; holder != holders_.end() && holder->block <= block; ++holder) {
            if (holder->block + holder->count <= block) continue;
            const auto has = still_has(volume, *holder, block);
            if (!has) return std::unexpected(has.error());
            if (!*has) continue;
            const std::uint64_t at = holder->first + (block - holder->block);
            const bool is_other = first != nullptr && (first->fid != holder->fid ||
                                                       first->first + (block - first->block) != at);
            if (is_other) {
                ++shared;
                if (finding) break;
                finding = CheckFinding{.object = holder->fid, .object_block = at};
                finding->range = DiskRange{.block = block, .count = 1};
                break;
            }
            first = &*holder;
        }
    }
    if (!finding) return finding;
    finding->reason = "a block belongs to two extents";
    finding->range->count = static_cast<std::uint32_t>(shared);
    return finding;
}

}  // namespace fopd::store
