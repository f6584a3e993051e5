#include "store/extent_move.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "devices/device.h"

namespace fopd::store {

Result<void> ExtentMove::look(ObjectMap& map, Fid fid, BlockRange range) {
    ENSURE(range.count <= kBlocksMax);
    fid_ = fid;
    range_ = range;
    run_count_ = 0;
    count_ = 0;
    breaks_ = 0;
    ObjectMap::Extents extents = map.extents(fid, range);
    for (;;) {
        const auto extent = extents.next();
        if (!extent && extent.error().code == Errc::kBusy) return {};
        if (!extent) return std::unexpected(extent.error());
        if (!extent->has_value()) return {};
        add(**extent);
    }
}

void ExtentMove::add(const Extent& extent) {
    Run* const last = run_count_ == 0 ? nullptr : &runs_[run_count_ - 1];
    const bool is_neighbour = last != nullptr && last->first + last->count == extent.first;
    if (is_neighbour && last->block + last->count == extent.block) {
        last->count += extent.count();
    } else {
        if (is_neighbour) ++breaks_;
        runs_[run_count_++] = {
            .first = extent.first, .block = extent.block, .at = count_, .count = extent.count()};
    }
    std::ranges::copy(extent.checksums, checksums_.begin() + count_);
    count_ += extent.count();
}

bool ExtentMove::is_intact(std::span<const std::byte> bytes) const {
    ENSURE(bytes.size() == count_ * devices::kBlockBytes);
    for (std::uint32_t i = 0; i < count_; ++i) {
        const auto block = bytes.subspan(i * devices::kBlockBytes, devices::kBlockBytes);
        if (core::crc32c(block) != checksums_[i]) return false;
    }
    return true;
}

Result<bool> ExtentMove::is_unchanged(ObjectMap& map) const {
    ExtentMove now;
    const auto looked = now.look(map, fid_, range_);
    if (!looked) return std::unexpected(looked.error());
    const auto same_run = [](const Run& one, const Run& other) {
        return one.first == other.first && one.block == other.block && one.count == other.count;
    };
    if (now.count_ != count_ || !std::ranges::equal(now.runs(), runs(), same_run)) return false;
    // Compares checksums too: the object may have lost these blocks and got them again with other
    // data.
    return std::ranges::equal(std::span(now.checksums_).first(count_),
                              std::span(checksums_).first(count_));
}

void ExtentMove::write_records(std::span<const DiskRange> ranges, RecordWriter& records) const {
    std::size_t index = 0;
    std::uint32_t used = 0;  // How many blocks of the range are used.
    for (std::size_t i = 0; i < run_count_;) {
        // Writes one record for blocks that are consecutive in the object and in the new range.
        const Run& first = runs_[i];
        std::uint32_t count = 0;
        for (; i < run_count_ && runs_[i].first == first.first + count; ++i) {
            count += runs_[i].count;
        }
        for (std::uint32_t done = 0; done < count;) {
            if (used == ranges[index].count) {
                ++index;
                used = 0;
            }
            const std::uint32_t here = std::min(count - done, ranges[index].count - used);
            records.extent(fid_,
                           {.first = first.first + done,
                            .block = ranges[index].block + used,
                            .checksums = std::span(checksums_).subspan(first.at + done, here)});
            done += here;
            used += here;
        }
    }
}

}  // namespace fopd::store
