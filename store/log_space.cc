#include "store/log_space.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::store {

LogSpace::LogSpace(Limits limits) : limits_(limits) {
    ENSURE(limits.entry_blocks_max > 0);
    ENSURE(4 * limits.entry_blocks_max <= limits.segment_blocks);
}

void LogSpace::restore(std::vector<LogSegment> segments, std::size_t head,
                       std::uint32_t head_block) {
    ENSURE(head < segments.size());
    ENSURE(head_block <= limits_.segment_blocks);
    ENSURE(promised_ == 0);
    segments_ = std::move(segments);
    head_ = head;
    head_block_ = head_block;
}

std::uint64_t LogSpace::capacity_of(std::size_t free_segments) const {
    const std::uint64_t rest = limits_.segment_blocks - head_block_;
    const std::uint64_t lost = limits_.entry_blocks_max - 1;
    return (rest > lost ? rest - lost : 0) + free_segments * usable();
}

std::uint64_t LogSpace::cleaning_reserve() const {
    // A segment with only live records may need its full size again, and only its usable part is
    // freed.
    return limits_.segment_blocks + 2ULL * limits_.entry_blocks_max;
}

std::uint64_t LogSpace::headroom() const {
    const std::uint64_t spoken_for = promised_ + cleaning_reserve();
    return capacity() > spoken_for ? capacity() - spoken_for : 0;
}

void LogSpace::promise(std::uint32_t blocks) {
    promised_ += blocks;
    ENSURE(promised_ <= capacity_now());
}

void LogSpace::release(std::uint32_t blocks) {
    ENSURE(blocks <= promised_);
    promised_ -= blocks;
}

LogSpace::Taken LogSpace::take(const Wanted& entry) {
    ENSURE(entry.blocks > 0);
    ENSURE(entry.blocks <= limits_.entry_blocks_max);
    release(entry.blocks);
    const bool new_segment = !stays_in_segment(entry.blocks);
    if (new_segment) {
        ENSURE(free_count() > 0);
        ++head_;
        ENSURE(head_ != held_);
        head_block_ = 0;
    }
    if (head_block_ == 0) segments_[head_].first_seq = entry.seq;
    const LogPosition at{.segment = segments_[head_].number, .block = head_block_};
    head_block_ += entry.blocks;
    ENSURE(promised_ <= capacity_now());
    return {.position = at, .new_segment = new_segment};
}

bool LogSpace::hold(std::size_t index) {
    ENSURE(held_ == 0);
    ENSURE(index > head_ && index < segments_.size());
    if (promised_ + cleaning_reserve() > capacity_of(index - head_ - 1)) return false;
    held_ = index;
    return true;
}

void LogSpace::remove_oldest() {
    ENSURE(head_ > 0);
    segments_.erase(segments_.begin());
    --head_;
    if (held_ > 0) --held_;
}

void LogSpace::remove_newest() {
    ENSURE(free_count() > 0 && held_ == 0);
    segments_.pop_back();
    ENSURE(promised_ <= capacity_now());
}

}  // namespace fopd::store
