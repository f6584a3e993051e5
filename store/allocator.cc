#include "store/allocator.h"

#include <algorithm>
#include <bit>

#include "core/ensure.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

constexpr std::uint32_t kWordBits = 64;
// So many empty segments are never held, so that data always finds one.
constexpr std::uint32_t kNotHeld = 4;

// A mask of the bits [first, first + count) of a word.
constexpr std::uint64_t mask(std::uint32_t first, std::uint32_t count) {
    const std::uint64_t ones = count == kWordBits ? ~0ULL : (1ULL << count) - 1;
    return ones << first;
}

// Calls visit(word index, mask) for each word that the range touches, until it returns false.
template <typename Visit>
bool each_word(DiskRange range, Visit visit) {
    std::uint64_t block = range.block;
    std::uint64_t left = range.count;
    while (left > 0) {
        const auto bit = static_cast<std::uint32_t>(block % kWordBits);
        const auto here =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kWordBits - bit));
        if (!visit(block / kWordBits, mask(bit, here))) return false;
        block += here;
        left -= here;
    }
    return true;
}

}  // namespace

Allocator::Allocator(const Options& options)
    : first_block_(options.first_block),
      segment_blocks_(options.segment_blocks),
      freeing_reserve_blocks_(options.freeing_reserve_blocks) {
    ENSURE(segment_blocks_ > 0 && segment_blocks_ % kWordBits == 0);
    ENSURE(options.disk_blocks >= first_block_ + segment_blocks_);
    const std::uint64_t count = (options.disk_blocks - first_block_) / segment_blocks_;
    segments_.resize(count);
    used_.resize(count * segment_blocks_ / kWordBits);
    empty_segments_ = static_cast<std::uint32_t>(count);
    free_blocks_ = count * segment_blocks_;
}

bool Allocator::is_ours(DiskRange range) const {
    const std::uint64_t end = first_block_ + segments_.size() * segment_blocks_;
    return range.count > 0 && range.block >= first_block_ && range.block < end &&
           range.count <= end - range.block;
}

bool Allocator::any_used(DiskRange range) const {
    return !each_word(range, [this](std::uint64_t word, std::uint64_t bits) {
        return (used_[word] & bits) == 0;
    });
}

// Calls visit(part) for the part of the range in each segment, until it returns false.
template <typename Visit>
bool Allocator::each_segment(DiskRange range, Visit visit) const {
    while (range.count > 0) {
        const std::uint64_t left = segment_blocks_ - range.block % segment_blocks_;
        const auto here = static_cast<std::uint32_t>(std::min<std::uint64_t>(range.count, left));
        if (!visit(DiskRange{.block = range.block, .count = here})) return false;
        range.block += here;
        range.count -= here;
    }
    return true;
}

// REQUIRES: the range lies in one segment.
void Allocator::set(DiskRange range, bool used) {
    each_word(range, [this, used](std::uint64_t word, std::uint64_t bits) {
        used_[word] = used ? used_[word] | bits : used_[word] & ~bits;
        return true;
    });
    const auto index = static_cast<std::uint32_t>(range.block / segment_blocks_);
    Segment& segment = segments_[index];
    if (used) {
        if (segment.owner == Owner::kNobody) take_over(segment, Owner::kData);
        segment.used += range.count;
        free_blocks_ -= range.count;
    } else {
        segment.used -= range.count;
        free_blocks_ += range.count;
        if (segment.used == 0) has_become_empty(index);
    }
}

Result<void> Allocator::take(DiskRange range) {
    if (!is_ours(range)) return corrupt("an extent that is not on the disk");
    range = inside(range);
    const bool data = each_segment(range, [this](DiskRange part) {
        return segments_[part.block / segment_blocks_].owner != Owner::kLog;
    });
    if (!data) return corrupt("an extent in a segment of the log");
    if (any_used(range)) return corrupt("two extents on one block");
    each_segment(range, [this](DiskRange part) {
        set(part, true);
        return true;
    });
    return {};
}

Result<void> Allocator::take_segment(std::uint32_t segment) {
    if (segment >= segments_.size()) {
        return corrupt("a segment that is not on the disk");
    }
    Segment& taken = segments_[segment];
    if (taken.owner != Owner::kNobody) return corrupt("a segment with two owners");
    take_over(taken, Owner::kLog);
    ++log_segments_;
    free_blocks_ -= segment_blocks_;
    return {};
}

// Moves to a segment that has free blocks: to the lowest empty one, because empty segments give
// long runs, otherwise to the next one with a free block. False if there is none.
bool Allocator::next_segment() {
    if (empty_segments_ > log_reserve()) {
        continue_in(lowest_empty());
        return true;
    }
    const auto count = static_cast<std::uint32_t>(segments_.size());
    // The current segment comes last: it may have free blocks before the cursor.
    for (std::uint32_t step = 1; step <= count; ++step) {
        const std::uint32_t index = (current_ + step) % count;
        if (!is_for_data(segments_[index])) continue;
        continue_in(index);
        return true;
    }
    return false;
}

// REQUIRES: a segment is empty.
std::uint32_t Allocator::lowest_empty() {
    while (segments_[none_empty_below_].owner != Owner::kNobody) ++none_empty_below_;
    return none_empty_below_;
}

void Allocator::borrow_segment() {
    const std::uint32_t borrowed = lowest_empty();
    take_over(segments_[borrowed], Owner::kData);
    continue_in(borrowed);
}

// The next run of free blocks in the current segment, from the cursor on.
std::optional<DiskRange> Allocator::take_run(std::uint32_t count) {
    const std::uint64_t end = block_of_segment(current_ + 1);
    if (!is_for_data(segments_[current_])) return std::nullopt;
    std::uint64_t first = cursor_;
    while (first < end) {
        const std::uint64_t free = ~used_[first / kWordBits] >> (first % kWordBits);
        if (free != 0) {
            first += static_cast<std::uint64_t>(std::countr_zero(free));
            break;
        }
        first = (first / kWordBits + 1) * kWordBits;
    }
    if (first >= end) return std::nullopt;
    std::uint64_t last = first;
    const std::uint64_t limit = std::min(end, first + count);
    while (last < limit) {
        const std::uint64_t used = used_[last / kWordBits] >> (last % kWordBits);
        const std::uint64_t in_word = kWordBits - last % kWordBits;
        const auto run = used == 0 ? in_word : static_cast<std::uint64_t>(std::countr_zero(used));
        last += std::min(run, in_word);
        if (run < in_word) break;
    }
    last = std::min(last, limit);
    const DiskRange range{.block = first, .count = static_cast<std::uint32_t>(last - first)};
    set(range, true);
    cursor_ = last;
    const DiskRange given{.block = first_block_ + first, .count = range.count};
    promised_blocks_ += given.count;
    tell_watch(given);
    return given;
}

std::uint64_t Allocator::blocks_for_data() const {
    const std::uint64_t of_log = std::uint64_t{std::min(empty_segments_, log_reserve())};
    return free_blocks_ - of_log * segment_blocks_ - held_blocks();
}

std::optional<DiskRange> Allocator::allocate(std::uint32_t count, Purpose purpose) {
    ENSURE(count > 0);
    if (purpose == Purpose::kAdding) {
        const std::uint64_t left = blocks_for_data();
        const std::uint64_t left_over = left_by_adding();
        if (left <= left_over) return std::nullopt;
        count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, left - left_over));
    }
    if (std::optional<DiskRange> range = take_run(count)) return range;
    if (!next_segment()) {
        if (purpose == Purpose::kAdding || !may_borrow_segment()) return std::nullopt;
        borrow_segment();
    }
    return take_run(count);
}

void Allocator::take_up(DiskRange range) {
    // When a change fails half-way, its volume fails, and its blocks may be both taken up and given
    // back: the counter must not wrap.
    promised_blocks_ -= std::min<std::uint64_t>(promised_blocks_, range.count);
    if (watch_ != nullptr) watch_->settled(range);
}

void Allocator::give_back(DiskRange range) {
    ENSURE(is_ours(range));
    take_up(range);
    range = inside(range);
    set(range, false);
    // The next allocation begins where this one did.
    if (range.block + range.count == cursor_) cursor_ = range.block;
}

void Allocator::begin_read(Reading& reading) {
    ENSURE(!reading.linked());
    reading.began_ = releases_;
    reading.rests_ = false;
    readings_.push_back(reading);
}

void Allocator::end_resting_reads() {
    const auto unsettled = std::ranges::upper_bound(waiting_, settled_, {}, &Waiting::sequence);
    if (unsettled == waiting_.begin()) return;
    const std::uint64_t newest = std::prev(unsettled)->freed_at;
    readings_.for_each([newest](Reading& reading) {
        if (reading.rests_ && reading.began_ < newest) reading.unlink();
    });
}

void Allocator::release(DiskRange range, std::uint64_t sequence) {
    ENSURE(is_ours(range));
    tell_watch(range);
    ++releases_;
    waiting_.push_back({.range = inside(range), .sequence = sequence, .freed_at = releases_});
    waiting_blocks_ += range.count;
}

void Allocator::settle(std::uint64_t sequence) {
    settled_ = std::max(settled_, sequence);
    const std::uint64_t read_since = readings_.empty() ? releases_ : readings_.front().began_;
    while (!waiting_.empty()) {
        const Waiting& first = waiting_.front();
        if (first.sequence > settled_ || first.freed_at > read_since) return;
        waiting_blocks_ -= first.range.count;
        each_segment(first.range, [this](DiskRange part) {
            set(part, false);
            return true;
        });
        waiting_.pop_front();
    }
}

std::optional<std::uint32_t> Allocator::allocate_segment() {
    if (empty_segments_ == 0) return std::nullopt;
    const auto count = static_cast<std::uint32_t>(segments_.size());
    // From the middle on, because data begins in the lowest segments and keeps its long runs so.
    const std::uint32_t from = count / 2;
    for (std::uint32_t step = 0; step < count; ++step) {
        const std::uint32_t index = (from + step) % count;
        if (segments_[index].owner != Owner::kNobody) continue;
        const Result<void> taken = take_segment(index);
        ENSURE(taken.has_value());
        return index;
    }
    return std::nullopt;
}

// An empty segment gets an owner.
void Allocator::take_over(Segment& segment, Owner owner) {
    segment.owner = owner;
    segment.stays_empty = false;
    if (segment.content == Content::kDiscarded) segment.content = Content::kAny;
    --empty_segments_;
}

void Allocator::has_become_empty(std::uint32_t index) {
    segments_[index].owner = Owner::kNobody;
    ++empty_segments_;
    none_empty_below_ = std::min(none_empty_below_, index);
}

bool Allocator::may_hold() const {
    return empty_segments_ > log_reserve() + kNotHeld;
}

std::optional<std::uint32_t> Allocator::hold_ahead(std::uint64_t blocks) {
    if (!may_hold()) return std::nullopt;
    const auto count = static_cast<std::uint32_t>(segments_.size());
    std::uint64_t ahead = 0;
    for (std::uint32_t index = lowest_empty(); index < count && ahead < blocks; ++index) {
        Segment& segment = segments_[index];
        if (segment.owner == Owner::kHeld) ahead += segment_blocks_;
        if (segment.owner != Owner::kNobody) continue;
        ahead += segment_blocks_;
        if (segment.content == Content::kFilled) continue;
        take_over(segment, Owner::kHeld);
        ++held_segments_;
        return index;
    }
    return std::nullopt;
}

void Allocator::note_empty() {
    for (Segment& segment : segments_) {
        segment.stays_empty =
            segment.owner == Owner::kNobody && segment.content != Content::kDiscarded;
    }
    looked_at_ = 0;
}

// The segment after the one that has the last of the next `blocks` empty blocks.
std::uint32_t Allocator::end_of_next(std::uint64_t blocks) const {
    const auto count = static_cast<std::uint32_t>(segments_.size());
    std::uint64_t ahead = 0;
    std::uint32_t index = none_empty_below_;
    for (; index < count && ahead < blocks; ++index) {
        const Owner owner = segments_[index].owner;
        if (owner == Owner::kNobody || owner == Owner::kHeld) ahead += segment_blocks_;
    }
    return index;
}

std::optional<std::uint32_t> Allocator::hold_unused(std::uint64_t ahead_blocks) {
    const auto count = static_cast<std::uint32_t>(segments_.size());
    looked_at_ = std::max(looked_at_, end_of_next(ahead_blocks));
    for (; looked_at_ < count && may_hold(); ++looked_at_) {
        Segment& segment = segments_[looked_at_];
        if (!segment.stays_empty) continue;
        take_over(segment, Owner::kHeld);
        ++held_segments_;
        return looked_at_;
    }
    return std::nullopt;
}

void Allocator::end_hold(std::uint32_t segment, Content content) {
    Segment& held = segments_[segment];
    ENSURE(held.owner == Owner::kHeld);
    held.content = content;
    has_become_empty(segment);
    --held_segments_;
}

void Allocator::release_segment(std::uint32_t segment) {
    ENSURE(segment < segments_.size());
    Segment& released = segments_[segment];
    ENSURE(released.owner == Owner::kLog);
    has_become_empty(segment);
    --log_segments_;
    free_blocks_ += segment_blocks_;
}

bool Allocator::is_used(std::uint64_t block) const {
    block -= first_block_;
    return (used_[block / kWordBits] >> (block % kWordBits) & 1) != 0;
}

bool Allocator::is_free(std::uint64_t block) const {
    if (!is_ours({.block = block, .count = 1})) return false;
    const std::uint64_t segment = (block - first_block_) / segment_blocks_;
    return segments_[segment].owner != Owner::kLog && !is_used(block);
}

std::optional<Allocator::Fault> Allocator::fault_of(DiskRange range) const {
    if (!is_ours(range)) return Fault{range.block, "is not in the part of the disk for data"};
    std::optional<Fault> fault;
    each_segment(inside(range), [this, &fault](DiskRange part) {
        const bool is_log = segments_[part.block / segment_blocks_].owner == Owner::kLog;
        if (is_log) fault = {first_block_ + part.block, "is in a segment of the log"};
        for (std::uint32_t i = 0; !fault && i < part.count; ++i) {
            const std::uint64_t block = first_block_ + part.block + i;
            if (!is_used(block)) fault = {block, "is free"};
        }
        return !fault;
    });
    return fault;
}

bool Allocator::is_counted_well(std::uint32_t segment) const {
    const std::uint64_t first = block_of_segment(segment) / kWordBits;
    std::uint64_t bits = 0;
    for (std::uint64_t word = first; word < first + segment_blocks_ / kWordBits; ++word) {
        bits += static_cast<std::uint64_t>(std::popcount(used_[word]));
    }
    const Segment& counted = segments_[segment];
    return counted.used == bits && (counted.owner == Owner::kData) == (bits > 0);
}

bool Allocator::are_sums_right() const {
    std::uint64_t free = 0;
    std::uint32_t empty = 0;
    std::uint32_t held = 0;
    std::uint32_t log = 0;
    bool is_found = true;  // The lowest empty segment, by none_empty_below_.
    for (std::uint32_t index = 0; index < segments_.size(); ++index) {
        const Segment& each = segments_[index];
        if (each.owner == Owner::kNobody && index < none_empty_below_) is_found = false;
        if (each.owner == Owner::kLog) ++log;
        if (each.owner == Owner::kNobody) ++empty;
        if (each.owner == Owner::kHeld) ++held;
        if (each.owner != Owner::kLog) free += segment_blocks_ - each.used;
    }
    std::uint64_t waiting = 0;
    for (const Waiting& each : waiting_) waiting += each.range.count;
    return is_found && free == free_blocks_ && empty == empty_segments_ && held == held_segments_ &&
           log == log_segments_ && waiting == waiting_blocks_;
}

SpaceUse Allocator::use() const {
    const std::uint64_t for_data = blocks_for_data() + held_blocks();
    const std::uint64_t total = segments_.size() * segment_blocks_;
    const std::uint64_t log = std::uint64_t{log_segments_} * segment_blocks_;
    return {.total_blocks = total,
            .free_blocks = for_data - std::min(for_data, left_by_adding()),
            .waiting_blocks = waiting_blocks_,
            .log_blocks = log,
            .used_blocks = total - free_blocks_ - waiting_blocks_ - log};
}

}  // namespace fopd::store
