#include "reqh/write_plan.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::reqh {

namespace {

constexpr std::uint64_t block_of(std::uint64_t offset) {
    return offset / fop::kBlockBytes;
}

}  // namespace

store::BlockRange blocks_of(std::span<const fop::Range> ranges) {
    std::uint64_t first = store::kObjectBlocksMax;
    std::uint64_t end = 0;
    for (const fop::Range& range : ranges) {
        if (range.length == 0) continue;
        first = std::min(first, block_of(range.offset));
        end = std::max(end, block_of(range.end() - 1) + 1);
    }
    if (end == 0) return {};
    return {.first = first, .count = end - first};
}

Result<void> WritePlan::begin(std::span<const fop::Range> ranges, std::size_t chunk_blocks) {
    ENSURE(ranges.size() <= fop::kRangesMax);
    ENSURE(chunk_blocks > 0 && chunk_blocks <= kChunkBlocks);
    ranges_ = ranges;
    chunk_blocks_ = chunk_blocks;
    count_ = 0;
    at_ = 0;
    next_ = 0;
    block_count_ = 0;
    fragment_count_ = 0;
    std::uint64_t sender_at = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        sender_at_[i] = sender_at;
        sender_at += ranges[i].length;
        if (ranges[i].length > 0) order_[count_++] = static_cast<std::uint8_t>(i);
    }
    const auto order = std::span(order_).first(count_);
    std::ranges::sort(order, {}, [ranges](std::uint8_t i) { return ranges[i].offset; });
    for (std::size_t i = 1; i < count_; ++i) {
        if (ranges[order[i - 1]].end() > ranges[order[i]].offset) {
            return std::unexpected(
                Error{.code = Errc::kInvalid, .context = "the ranges of a write overlap"});
        }
    }
    return {};
}

// A block that two ranges share is in one chunk, with both of them.
bool WritePlan::next_chunk() {
    block_count_ = 0;
    fragment_count_ = 0;
    while (at_ < count_) {
        const std::size_t which = order_[at_];
        const fop::Range& range = ranges_[which];
        next_ = std::max(next_, range.offset);
        const bool shares = block_count_ > 0 && blocks_[block_count_ - 1].number == block_of(next_);
        const std::size_t first_index = shares ? block_count_ - 1 : block_count_;
        if (first_index == chunk_blocks_) break;
        const std::uint64_t room =
            (block_of(next_) + chunk_blocks_ - first_index) * fop::kBlockBytes;
        const std::uint64_t end = std::min(range.end(), room);
        take(range, which, first_index, end);
        next_ = end;
        if (end == range.end()) {
            ++at_;
            next_ = 0;
        }
    }
    return fragment_count_ > 0;
}

void WritePlan::take(const fop::Range& range, std::size_t which, std::size_t first_index,
                     std::uint64_t end) {
    fragments_[fragment_count_++] = {
        .range = which,
        .offset = next_,
        .length = end - next_,
        .sender_at = sender_at_[which] + (next_ - range.offset),
        .buffer_at = first_index * fop::kBlockBytes + next_ % fop::kBlockBytes};
    std::size_t index = first_index;
    for (std::uint64_t at = next_; at < end; ++index) {
        const std::uint64_t block_end = std::min(end, (block_of(at) + 1) * fop::kBlockBytes);
        if (index == block_count_) blocks_[block_count_++] = {.number = block_of(at)};
        blocks_[index].covered_bytes += static_cast<std::uint32_t>(block_end - at);
        at = block_end;
    }
}

bool RunCheck::take(std::span<const std::byte> bytes) {
    ENSURE(bytes.size() <= end_ - next_);
    while (!bytes.empty()) {
        const std::uint64_t run_end = std::min(end_, (block_of(next_) + 1) * fop::kBlockBytes);
        const auto part = bytes.first(std::min<std::size_t>(bytes.size(), run_end - next_));
        running_ = core::crc32c(part, running_);
        const std::size_t run = block_of(next_) - block_of(basis_);
        next_ += part.size();
        bytes = bytes.subspan(part.size());
        if (next_ < run_end) continue;
        if (checksums_[run] != running_) return false;
        running_ = 0;
    }
    return true;
}

}  // namespace fopd::reqh
