#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/superblock.h"

namespace fopd::store {

// Where in a log something lies.
struct LogPosition {
    std::uint32_t segment = 0;  // Its number on the disk.
    std::uint32_t block = 0;    // Within it.

    friend bool operator==(const LogPosition&, const LogPosition&) = default;
};

// The segments of a log in their order, the place of the next entry among them, and what is
// promised of the room behind it. Pure.
//
// An entry lies in one segment; when it does not fit, the rest of the segment stays unused. So of
// the room in a segment an entry less one block counts as lost, and the invariant is: what is
// promised never exceeds capacity(), whatever sizes the entries will have.
class LogSpace {
public:
    struct Limits {
        std::uint32_t segment_blocks = 0;
        std::uint32_t entry_blocks_max = 0;
    };
    explicit LogSpace(Limits limits);

    // The log's segments, and where it goes on: behind `head_block` blocks of segments[head].
    void restore(std::vector<LogSegment> segments, std::size_t head, std::uint32_t head_block);

    const std::vector<LogSegment>& segments() const { return segments_; }
    std::size_t head() const { return head_; }
    std::uint32_t head_block() const { return head_block_; }
    std::size_t free_count() const { return segments_.size() - head_ - 1; }

    // Blocks of entries that fit for sure, as long as nothing is held.
    std::uint64_t capacity() const { return capacity_of(free_count()); }
    std::uint64_t promised() const { return promised_; }
    // What only cleaning may be promised: it commits again up to a segment before it frees one.
    std::uint64_t cleaning_reserve() const;
    // Enough for one segment that was all alive: it is committed again in few entries, of which
    // each wastes less than a block.
    std::uint64_t cleaning_least() const { return limits_.segment_blocks * 5ULL / 4; }
    // What those that add leave, beside the room for cleaning, to those that free. So little is
    // free when they must wait for it that cleaning has been wanted long since.
    std::uint64_t freeing_reserve() const {
        return (segments_.size() < kShort ? 1ULL : 2ULL) * limits_.entry_blocks_max;
    }
    // What can be promised to commits.
    std::uint64_t headroom() const;
    // Too little to go on for long.
    bool low() const { return headroom() < 2ULL * usable(); }
    bool very_low() const { return headroom() < usable(); }
    // One segment less would not be too little.
    bool is_ample() const { return headroom() >= 3ULL * usable(); }
    // What a round of cleaning has to gain: a part of its cost, which is all of the log.
    std::uint64_t worth_cleaning() const { return segments_.size() * usable() / 16; }
    // What may be committed again for nothing when the power goes.
    std::uint64_t worth_noting() const { return usable() / 8; }

    bool fits(std::uint32_t blocks, std::uint64_t left_over) const {
        return promised_ + blocks + left_over <= capacity_now();
    }
    void promise(std::uint32_t blocks);
    void release(std::uint32_t blocks);

    struct Placed {
        LogPosition position;
        bool new_segment = false;
    };
    struct Wanted {
        std::uint64_t seq = 0;
        std::uint32_t blocks = 0;  // They were promised.
    };
    // Whether an entry of so many blocks would lie in the segment that is being written.
    bool stays_in_segment(std::uint32_t blocks) const {
        return blocks <= limits_.segment_blocks - head_block_;
    }
    // The place of the next entry.
    Placed place(const Wanted& entry);

    // For something else that is done to segments[index], neither it nor those behind it are
    // entered until the hold ends; what is promised has room before it, and cleaning has. False
    // when that is not so. One at a time.
    bool hold(std::size_t index);
    void end_hold() { held_ = 0; }
    bool is_held() const { return held_ != 0; }

    void add(std::uint32_t number) { segments_.push_back({.number = number}); }
    // Requires: it is not the one being written.
    void remove_oldest();
    // Requires: nothing was written into it, and none is held.
    void remove_newest();

private:
    static constexpr std::size_t kShort = 8;  // Segments: such a log has little to give away.

    std::uint64_t usable() const { return limits_.segment_blocks - limits_.entry_blocks_max + 1; }

    std::uint64_t capacity_of(std::size_t free_segments) const;
    std::uint64_t capacity_now() const {
        return capacity_of(held_ == 0 ? free_count() : held_ - head_ - 1);
    }

    const Limits limits_;
    std::vector<LogSegment> segments_;
    std::size_t head_ = 0;
    std::size_t held_ = 0;  // 0: none.
    std::uint32_t head_block_ = 0;
    std::uint64_t promised_ = 0;
};

}  // namespace fopd::store
