#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/intrusive_list.h"
#include "core/result.h"
#include "store/extent.h"
#include "store/purpose.h"

namespace fopd::store {

// A read in progress: no block that was in use when it began is allocated again until it is
// destroyed, or ended while it rests.
class Reading : public core::ListNode {
public:
    // From now on the read needs no block of the disk, until it goes on. A client that takes its
    // bytes slowly must not keep blocks that others freed: when the disk has no free block, reads
    // that rest are ended.
    void rest() { rests_ = true; }
    // False: it was ended while it rested. Its blocks may have other content; to read on, begin
    // anew.
    bool go_on() {
        rests_ = false;
        return linked();
    }

private:
    friend class Allocator;
    std::uint64_t began_ = 0;
    bool rests_ = false;
};

struct SpaceUse {
    std::uint64_t total_blocks = 0;
    // Available to data, now or when work on empty segments (zeros, discards) has ended.
    std::uint64_t free_blocks = 0;
    std::uint64_t waiting_blocks = 0;  // Freed, but not to be allocated yet.
    std::uint64_t log_blocks = 0;
    std::uint64_t used_blocks = 0;  // In extents of objects.

    // Blocks that are free, or become free without another change.
    std::uint64_t room_blocks() const { return free_blocks + waiting_blocks; }
    // All that data have or can have.
    std::uint64_t data_blocks() const { return used_blocks + room_blocks(); }
};

// Observes which blocks are allocated, recorded, freed and given back.
class SpaceWatch {
public:
    virtual ~SpaceWatch() = default;
    // Blocks were allocated, or a record that has just begun frees them.
    virtual void touched(DiskRange range) = 0;
    // Allocated blocks are named by a record that has just begun, or were given back.
    virtual void settled(DiskRange range) = 0;
};

// The blocks of a disk that are in use. The disk is divided into segments of equal size; a segment
// belongs to the log or to data. Within a segment of data, blocks are allocated in ascending order,
// so that data written together lies together and the disk sees long writes. When it is full, data
// continues in the lowest empty segment: blocks that were freed are used before blocks that were
// never used, so that a disk that is a thin file stays small. The state is in memory only; each
// start builds it from the index.
//
// A freed block is pending first: it is allocated again when the record that freed it can no longer
// be lost, and every read that began before has ended.
class Allocator {
public:
    struct Options {
        std::uint64_t disk_blocks = 0;
        std::uint64_t first_block = 0;     // Where segment 0 begins.
        std::uint32_t segment_blocks = 0;  // A multiple of 64.
        // Changes that add must leave so many blocks; only a change that frees more blocks than it
        // takes may use them.
        std::uint32_t freeing_reserve_blocks = 0;
    };
    explicit Allocator(const Options& options);

    // -- at the start: reports the blocks in use --

    // kCorrupt if it has an owner already, or is not on the disk.
    Result<void> take(DiskRange range);
    Result<void> take_segment(std::uint32_t segment);

    // -- data --

    // Up to `count` consecutive blocks, at least one; nothing if no block is available.
    std::optional<DiskRange> allocate(std::uint32_t count, Purpose purpose = Purpose::kAdding);
    // A record names blocks that allocate() returned: from now on only release() frees them.
    void take_up(DiskRange range);
    // Frees blocks of allocate() at once, because no record names them: the write was given up
    // before its change began.
    void give_back(DiskRange range);
    // The record `sequence` frees the range.
    void release(DiskRange range, std::uint64_t sequence);
    // Records up to `sequence` can no longer be lost. Pending ranges that they freed become free,
    // unless a read delays them.
    void settle(std::uint64_t sequence);
    // REQUIRES: the reading has not begun, or has ended.
    void begin_read(Reading& reading);
    // Ends the reads that rest and alone delay a pending range. The next settle() frees the range.
    void end_resting_reads();
    // Whether a pending range waits for its record, apart from reads; newest_waiting() is the
    // newest record that freed a pending range.
    bool has_unsettled() const { return newest_waiting() > settled_; }
    std::uint64_t newest_waiting() const { return waiting_.empty() ? 0 : waiting_.back().sequence; }

    // -- work on empty segments; nothing is allocated from a held segment --

    // Holds the first segment among those that data reaches in its next `blocks` blocks and that is
    // not known to be filled. Nothing if there is none, or if few segments are empty.
    std::optional<std::uint32_t> hold_ahead(std::uint64_t blocks);
    // From now on the allocator observes which of the segments that are empty now stay so.
    void note_empty();
    // Holds a segment that has been empty since the last note_empty() and is not discarded already,
    // but none that data reaches in its next `ahead_blocks`. Nothing if there is none, or if few
    // segments are empty.
    std::optional<std::uint32_t> hold_unused(std::uint64_t ahead_blocks);
    enum class Content : std::uint8_t {
        kAny,
        kFilled,     // Every block was written at least once.
        kDiscarded,  // No block was written since the discard.
    };
    void end_hold(std::uint32_t segment, Content content);
    bool is_holding() const { return held_segments_ > 0; }

    // -- the log --

    // How many segments the log has or may need. Data does not begin in empty segments that the log
    // may need: without room in the log nothing could be deleted.
    void set_log_claim(std::uint32_t segments) { log_claim_ = segments; }
    std::uint32_t empty_segments() const { return empty_segments_; }
    // Allocates an empty segment for the log. Nothing if there is none.
    std::optional<std::uint32_t> allocate_segment();
    // REQUIRES: nobody reads its content any more.
    void release_segment(std::uint32_t segment);

    std::uint32_t segment_blocks() const { return segment_blocks_; }
    DiskRange range_of(std::uint32_t segment) const {
        return {.block = first_block_ + block_of_segment(segment), .count = segment_blocks_};
    }
    // The segment in which blocks are allocated.
    std::uint32_t current_segment() const { return current_; }
    SpaceUse use() const;
    // How many blocks allocate() can give to changes that free: the free ones, except those in
    // empty segments that the log may need and in held segments. Changes that add leave
    // left_by_adding() of them.
    std::uint64_t blocks_for_data() const;
    // How many blocks allocate() can give to a change that frees more blocks than it takes.
    std::uint64_t blocks_to_free() const {
        return blocks_for_data() + (may_borrow_segment() ? segment_blocks_ : 0);
    }
    bool is_used(std::uint64_t block) const;
    // Whether the block is free; then nobody reads its content any more.
    bool is_free(std::uint64_t block) const;

    // -- for checks of the allocator's state --

    // Null: no observer. One at a time; it outlives its use here.
    void set_watch(SpaceWatch* watch) { watch_ = watch; }
    // Blocks that were allocated and neither named by a record nor given back.
    std::uint64_t promised_blocks() const { return promised_blocks_; }
    struct Fault {
        std::uint64_t block;
        const char* reason;
    };
    // The first block at which the range cannot be data in use, and the reason.
    std::optional<Fault> fault_of(DiskRange range) const;
    // A bit for each block from first_block() on, set if the block is data in use or pending.
    std::span<const std::uint64_t> used() const { return used_; }
    std::uint64_t first_block() const { return first_block_; }
    std::uint32_t segment_count() const { return static_cast<std::uint32_t>(segments_.size()); }
    template <typename Visit>
    void each_waiting(Visit visit) const {
        for (const Waiting& each : waiting_) {
            visit(DiskRange{.block = first_block_ + each.range.block, .count = each.range.count});
        }
    }
    // Whether the counter of a segment agrees with its bits.
    bool is_counted_well(std::uint32_t segment) const;
    // Whether the totals agree with the segments and the pending ranges.
    bool are_sums_right() const;

private:
    enum class Owner : std::uint8_t { kNobody, kData, kLog, kHeld };
    struct Segment {
        Owner owner = Owner::kNobody;
        Content content = Content::kAny;
        bool stays_empty = false;  // Since note_empty().
        std::uint32_t used = 0;    // In a segment of data: the number of blocks in use or pending.
    };
    struct Waiting {
        DiskRange range;
        std::uint64_t sequence;
        std::uint64_t freed_at;  // The value of releases_ when it was freed.
    };

    // Internally blocks are counted from the first segment.
    DiskRange inside(DiskRange range) const {
        return {.block = range.block - first_block_, .count = range.count};
    }
    std::uint64_t block_of_segment(std::uint32_t segment) const {
        return std::uint64_t{segment} * segment_blocks_;
    }
    bool is_ours(DiskRange range) const;
    void tell_watch(DiskRange range) {
        if (watch_ != nullptr) watch_->touched(range);
    }
    template <typename Visit>
    bool each_segment(DiskRange range, Visit visit) const;
    bool any_used(DiskRange range) const;
    void set(DiskRange range, bool used);
    // Whether blocks of it may be allocated.
    bool is_for_data(const Segment& segment) const {
        return segment.owner == Owner::kData
                   ? segment.used < segment_blocks_
                   : segment.owner == Owner::kNobody && empty_segments_ > log_reserve();
    }
    // How many segments the log may still need.
    std::uint32_t log_reserve() const {
        return log_claim_ > log_segments_ ? log_claim_ - log_segments_ : 0;
    }
    // Blocks in segments of data that the log's claim covers, because too few segments are empty.
    std::uint64_t borrowed_blocks() const {
        const std::uint64_t has = std::uint64_t{empty_segments_} + held_segments_;
        return log_reserve() > has ? (log_reserve() - has) * segment_blocks_ : 0;
    }
    std::uint64_t left_by_adding() const { return freeing_reserve_blocks_ + borrowed_blocks(); }
    std::uint64_t held_blocks() const { return std::uint64_t{held_segments_} * segment_blocks_; }
    void take_over(Segment& segment, Owner owner);
    void has_become_empty(std::uint32_t index);
    std::uint32_t lowest_empty();
    bool may_hold() const;
    std::uint32_t end_of_next(std::uint64_t blocks) const;
    bool next_segment();
    // The log's claim may rise after the reserve for freeing was set aside, and cover it. Then an
    // empty segment of the log is used instead, but not the last one.
    bool may_borrow_segment() const {
        return blocks_for_data() < freeing_reserve_blocks_ && empty_segments_ > 1;
    }
    void borrow_segment();
    void continue_in(std::uint32_t segment) {
        current_ = segment;
        cursor_ = block_of_segment(segment);
    }
    std::optional<DiskRange> take_run(std::uint32_t count);

    const std::uint64_t first_block_;
    const std::uint32_t segment_blocks_;
    const std::uint64_t freeing_reserve_blocks_;
    std::uint32_t log_claim_ = 0;
    std::vector<Segment> segments_;
    std::vector<std::uint64_t> used_;     // A bit for each block.
    std::uint32_t current_ = 0;           // The segment in which blocks are allocated;
    std::uint64_t cursor_ = 0;            // the next block to try.
    std::uint64_t free_blocks_ = 0;       // In segments of data, held segments and empty ones.
    std::uint32_t empty_segments_ = 0;    // Without an owner; held ones are not counted.
    std::uint32_t none_empty_below_ = 0;  // No segment with a lower index is empty.
    std::uint32_t log_segments_ = 0;
    std::uint32_t held_segments_ = 0;
    std::uint32_t looked_at_ = 0;  // The next segment for hold_unused().
    std::deque<Waiting> waiting_;  // In the order of release.
    std::uint64_t waiting_blocks_ = 0;
    std::uint64_t settled_ = 0;
    std::uint64_t releases_ = 0;
    core::IntrusiveList<Reading> readings_;  // Oldest first.
    SpaceWatch* watch_ = nullptr;
    std::uint64_t promised_blocks_ = 0;
};

}  // namespace fopd::store
