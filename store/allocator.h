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

// A read that has begun: what it may still look at is given to nobody else. Left on destruction.
class Reading : public core::ListNode {
private:
    friend class Allocator;
    std::uint64_t began_ = 0;
};

struct SpaceUse {
    std::uint64_t total_blocks = 0;
    // For data: at once, or when what is being done to an empty segment has ended.
    std::uint64_t free_blocks = 0;
    std::uint64_t waiting_blocks = 0;  // Freed, and not to be had yet.
    std::uint64_t log_blocks = 0;
    std::uint64_t used_blocks = 0;  // By what objects have.
};

// Observes which blocks are allocated, recorded, freed and given back.
class SpaceWatch {
public:
    virtual ~SpaceWatch() = default;
    // They were given out, or a record that has just begun frees them.
    virtual void touched(Place place) = 0;
    // Of what was given out: a record that has just begun speaks of it, or it was given back.
    virtual void settled(Place place) = 0;
};

// Which blocks of a disk are whose. The disk is cut into segments of one size; a segment belongs to
// the log, or its blocks are given out one after the other, so that what is written together lies
// together and the disk sees long writes. It is a picture in memory of what the index says, made
// anew at each start.
//
// A block that becomes free is first of all waiting: until the record that frees it can no longer
// be lost, and until every read that began before has ended.
class Allocator {
public:
    struct Options {
        std::uint64_t disk_blocks = 0;
        std::uint64_t first_block = 0;     // Where the first segment begins.
        std::uint32_t segment_blocks = 0;  // A multiple of 64.
        // What only those get who free more than that by it: the last ones.
        std::uint32_t freeing_reserve_blocks = 0;
    };
    explicit Allocator(const Options& options);

    // -- at the start: what is in use --

    // kCorrupt when somebody else has it already, or it is not on the disk.
    Result<void> take(Place place);
    Result<void> take_segment(std::uint32_t segment);

    // -- data --

    // Up to `count` consecutive blocks, at least one; nothing when the disk is full.
    std::optional<Place> allocate(std::uint32_t count, Purpose purpose = Purpose::kAdding);
    // A record speaks of what allocate() gave: from now on release() is for it.
    void take_up(Place place);
    // At once: nobody has heard of it. For a write that was given up before it was begun.
    void give_back(Place place);
    // The record `sequence` frees it.
    void release(Place place, std::uint64_t sequence);
    // Every record up to `sequence` is there to stay; what waits for that and for no reader becomes
    // free.
    void settle(std::uint64_t sequence);
    void begin_read(Reading& reading);
    // Something waits for its record, whoever reads; and for which one, the newest of those.
    bool has_unsettled() const { return newest_waiting() > settled_; }
    std::uint64_t newest_waiting() const { return waiting_.empty() ? 0 : waiting_.back().sequence; }

    // -- what is done to empty segments, while nobody gets any part of them --

    // The first of those that data comes to in its next `blocks` blocks of which it is not known
    // that they are filled. Nothing when there is none, or when few are empty.
    std::optional<std::uint32_t> hold_ahead(std::uint64_t blocks);
    // From now on it shows which empty segments stay so.
    void note_empty();
    // One that was empty at the last note_empty() and has been since, and is not discarded already;
    // none of those that data comes to in its next `ahead_blocks`. Nothing when there is none, or
    // when few are empty.
    std::optional<std::uint32_t> hold_unused(std::uint64_t ahead_blocks);
    enum class Content : std::uint8_t {
        kAny,
        kFilled,     // All of it was written once.
        kDiscarded,  // Nothing of it was, since.
    };
    void end_hold(std::uint32_t segment, Content content);
    bool is_holding() const { return held_segments_ > 0; }

    // -- the log --

    // So many segments the log has, or may come to have: data leaves them alone while they are
    // empty, since without log there is no way to delete anything.
    void set_log_claim(std::uint32_t segments) { log_claim_ = segments; }
    std::uint32_t empty_segments() const { return empty_segments_; }
    // Allocates an empty segment for the log. Nothing if there is none.
    std::optional<std::uint32_t> allocate_segment();
    // Requires: nobody will look at what it holds.
    void release_segment(std::uint32_t segment);

    std::uint32_t segment_blocks() const { return segment_blocks_; }
    Place place_of(std::uint32_t segment) const {
        return {.block = first_block_ + block_of_segment(segment), .count = segment_blocks_};
    }
    // The segment whose blocks are given out.
    std::uint32_t current_segment() const { return current_; }
    SpaceUse use() const;
    // Those that allocate() may give now to whoever frees: free, and neither in the empty segments
    // that are the log's nor in one that is held. Those who add leave what is borrowed of the log,
    // and the reserve.
    std::uint64_t blocks_for_data() const;
    // Those that allocate() may give now to a change that frees more blocks than it takes.
    std::uint64_t blocks_to_free() const {
        return blocks_for_data() + (may_borrow_segment() ? segment_blocks_ : 0);
    }
    bool is_used(std::uint64_t block) const;
    // Anybody may have it, at once: nothing will ever look at what it holds.
    bool is_free(std::uint64_t block) const;

    // -- for checks of the allocator's state --

    // Null: nobody. One at a time; it outlives its being here.
    void set_watch(SpaceWatch* watch) { watch_ = watch; }
    // Given out, and neither taken up nor given back.
    std::uint64_t promised_blocks() const { return promised_blocks_; }
    struct Fault {
        std::uint64_t block;
        const char* reason;
    };
    // Why data cannot lie there, and the first block where it cannot.
    std::optional<Fault> fault_of(Place place) const;
    // A bit for each block from first_block() on: data has it, or had it and it waits.
    std::span<const std::uint64_t> used() const { return used_; }
    std::uint64_t first_block() const { return first_block_; }
    std::uint32_t segment_count() const { return static_cast<std::uint32_t>(segments_.size()); }
    template <typename Visit>
    void each_waiting(Visit visit) const {
        for (const Waiting& each : waiting_) {
            visit(Place{.block = first_block_ + each.place.block, .count = each.place.count});
        }
    }
    // Whether what is counted of a segment is what its bits say.
    bool is_counted_well(std::uint32_t segment) const;
    // Whether the sums are those of the segments, and of what waits.
    bool are_sums_right() const;

private:
    enum class Owner : std::uint8_t { kNobody, kData, kLog, kHeld };
    struct Segment {
        Owner owner = Owner::kNobody;
        Content content = Content::kAny;
        bool stays_empty = false;  // Since note_empty().
        std::uint32_t used = 0;    // Of data: blocks given out, or waiting.
    };
    struct Waiting {
        Place place;
        std::uint64_t sequence;
        std::uint64_t freed_at;  // On the readers' count.
    };

    // Within, blocks are counted from the first segment's.
    Place inside(Place place) const {
        return {.block = place.block - first_block_, .count = place.count};
    }
    std::uint64_t block_of_segment(std::uint32_t segment) const {
        return std::uint64_t{segment} * segment_blocks_;
    }
    bool is_ours(Place place) const;
    void tell_watch(Place place) {
        if (watch_ != nullptr) watch_->touched(place);
    }
    template <typename Visit>
    bool each_segment(Place place, Visit visit) const;
    bool any_used(Place place) const;
    void set(Place place, bool used);
    // Whether data may be put into it.
    bool is_for_data(const Segment& segment) const {
        return segment.owner == Owner::kData
                   ? segment.used < segment_blocks_
                   : segment.owner == Owner::kNobody && empty_segments_ > log_reserve();
    }
    // Empty segments that are not data's.
    std::uint32_t log_reserve() const {
        return log_claim_ > log_segments_ ? log_claim_ - log_segments_ : 0;
    }
    // Blocks of data's segments that are the log's: of the segments that it lacks of its claim.
    std::uint64_t borrowed_blocks() const {
        const std::uint64_t has = std::uint64_t{empty_segments_} + held_segments_;
        return log_reserve() > has ? (log_reserve() - has) * segment_blocks_ : 0;
    }
    std::uint64_t left_by_adding() const { return freeing_reserve_blocks_ + borrowed_blocks(); }
    std::uint64_t held_blocks() const { return std::uint64_t{held_segments_} * segment_blocks_; }
    void take_over(Segment& segment, Owner owner);
    bool may_hold() const;
    std::uint32_t steps_ahead(std::uint64_t blocks) const;
    bool next_segment();
    // The log's claim may have risen since the blocks for freeing were left over. Then one of its
    // empty segments serves instead, but not the last.
    bool may_borrow_segment() const {
        return blocks_for_data() < freeing_reserve_blocks_ && empty_segments_ > 1;
    }
    void borrow_segment();
    void continue_in(std::uint32_t segment) {
        current_ = segment;
        cursor_ = block_of_segment(segment);
    }
    std::optional<Place> take_run(std::uint32_t count);

    const std::uint64_t first_block_;
    const std::uint32_t segment_blocks_;
    const std::uint64_t freeing_reserve_blocks_;
    std::uint32_t log_claim_ = 0;
    std::vector<Segment> segments_;
    std::vector<std::uint64_t> used_;   // A bit for each block.
    std::uint32_t current_ = 0;         // Where blocks are given out,
    std::uint64_t cursor_ = 0;          // from here on.
    std::uint64_t free_blocks_ = 0;     // Of data segments and of nobody's.
    std::uint32_t empty_segments_ = 0;  // Nobody's.
    std::uint32_t log_segments_ = 0;
    std::uint32_t held_segments_ = 0;
    std::uint32_t looked_at_ = 0;  // For segments that stay empty.
    std::deque<Waiting> waiting_;  // In the order of release.
    std::uint64_t waiting_blocks_ = 0;
    std::uint64_t settled_ = 0;
    std::uint64_t releases_ = 0;
    core::IntrusiveList<Reading> readings_;  // The oldest first.
    SpaceWatch* watch_ = nullptr;
    std::uint64_t promised_blocks_ = 0;
};

}  // namespace fopd::store
