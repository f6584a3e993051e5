#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/superblock.h"

namespace fopd::store {

// A position in a log.
struct LogPosition {
    std::uint32_t segment = 0;  // The number of the segment on the disk.
    std::uint32_t block = 0;    // Within the segment.

    friend bool operator==(const LogPosition&, const LogPosition&) = default;
};

// The segments of a log in their order, the position of the next entry, and how much of the room
// behind it is promised to reservations. Pure.
//
// An entry lies in one segment; if it does not fit, the rest of the segment stays unused. So each
// segment may waste one block less than the largest entry, and capacity() leaves that out.
// Invariant: promised_ never exceeds capacity(), whatever the sizes of the entries turn out to be.
class LogSpace {
public:
    struct Limits {
        std::uint32_t segment_blocks = 0;
        std::uint32_t entry_blocks_max = 0;
    };
    explicit LogSpace(Limits limits);

    // Sets the log's segments and where it continues: behind `head_block` blocks of segments[head].
    void restore(std::vector<LogSegment> segments, std::size_t head, std::uint32_t head_block);

    const std::vector<LogSegment>& segments() const { return segments_; }
    std::size_t head() const { return head_; }
    std::uint32_t head_block() const { return head_block_; }
    std::size_t free_count() const { return segments_.size() - head_ - 1; }

    // How many blocks of entries certainly fit while no segment is held.
    std::uint64_t capacity() const { return capacity_of(free_count()); }
    // Room that only cleaning may use: it may commit a whole segment again before it frees one.
    std::uint64_t cleaning_reserve() const;
    // Room to commit one segment again if all of its records are live: they take few entries, and
    // each entry wastes less than a block.
    std::uint64_t cleaning_least() const { return limits_.segment_blocks * 5ULL / 4; }
    // Room that commits that add leave to commits that free, apart from that for cleaning. Cleaning
    // is wanted long before so little is free.
    std::uint64_t freeing_reserve() const {
        return (segments_.size() < kShort ? 1ULL : 2ULL) * limits_.entry_blocks_max;
    }
    // How many blocks can be promised to commits.
    std::uint64_t headroom() const;
    // Whether the log should soon grow or be cleaned.
    bool low() const { return headroom() < 2ULL * usable(); }
    bool very_low() const { return headroom() < usable(); }
    // Whether commits may soon have to wait for cleaning.
    bool nearly_out() const { return headroom() < usable() / 2; }
    // Whether the log can spare a segment.
    bool is_ample() const { return headroom() >= 3ULL * usable(); }
    // How many blocks a round of cleaning must gain: a part of its cost, which grows with the log.
    std::uint64_t worth_cleaning() const { return segments_.size() * usable() / 16; }
    // After how many blocks cleaned a superblock records cleaned_seq; a crash before repeats that
    // work.
    std::uint64_t worth_noting() const { return usable() / 8; }

    bool fits(std::uint32_t blocks, std::uint64_t left_over) const {
        return promised_ + blocks + left_over <= capacity_now();
    }
    void promise(std::uint32_t blocks);
    void release(std::uint32_t blocks);

    struct Taken {
        LogPosition position;
        bool new_segment = false;
    };
    struct Wanted {
        std::uint64_t seq = 0;
        std::uint32_t blocks = 0;  // As promised.
    };
    // Whether an entry of so many blocks fits in the current segment.
    bool stays_in_segment(std::uint32_t blocks) const {
        return blocks <= limits_.segment_blocks - head_block_;
    }
    // Gives the next entry its position, and ends the promise of its blocks.
    Taken take(const Wanted& entry);

    // Keeps entries out of segments[index] and those behind it until end_hold(), so that it can be
    // filled with zeros or removed. False if the promised room and that for cleaning would not fit
    // before it. One hold at a time.
    bool hold(std::size_t index);
    void end_hold() { held_ = 0; }
    bool is_held() const { return held_ != 0; }

    void add(std::uint32_t number) { segments_.push_back({.number = number}); }
    // REQUIRES: it is not the segment being written.
    void remove_oldest();
    // REQUIRES: it has no entries, and no segment is held.
    void remove_newest();

private:
    static constexpr std::size_t kShort = 8;  // Logs with fewer segments keep a smaller reserve.

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
