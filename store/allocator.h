#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/intrusive_list.h"
#include "core/result.h"
#include "store/extent.h"

namespace fopd::store {

// A read that has begun: what it may still look at is given to nobody else. Left on destruction.
class Reading : public core::ListNode {
private:
    friend class Allocator;
    std::uint64_t began_ = 0;
};

struct SpaceUse {
    std::uint64_t total_blocks = 0;
    std::uint64_t free_blocks = 0;     // For data, at once.
    std::uint64_t waiting_blocks = 0;  // Freed, and not to be had yet.
    std::uint64_t log_blocks = 0;
    std::uint64_t used_blocks = 0;  // By what objects have.
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
        // Empty ones that data leaves alone: without log there is no way to delete anything.
        std::uint32_t log_reserve_segments = 0;
    };
    explicit Allocator(const Options& options);

    // -- at the start: what is in use --

    // kCorrupt when somebody else has it already, or it is not on the disk.
    Result<void> take(Place place);
    Result<void> take_segment(std::uint32_t segment);

    // -- data --

    // Up to `count` consecutive blocks, at least one; nothing when the disk is full.
    std::optional<Place> allocate(std::uint32_t count);
    // At once: nobody has heard of it. For a write that was given up before it was begun.
    void give_back(Place place);
    // The record `sequence` frees it.
    void release(Place place, std::uint64_t sequence);
    // Every record up to `sequence` is there to stay; what waits for that and for no reader becomes
    // free.
    void settle(std::uint64_t sequence);
    void begin_read(Reading& reading);

    // -- the log --

    // A segment nobody uses any part of.
    std::optional<std::uint32_t> allocate_segment();
    // Requires: nobody will look at what it holds.
    void release_segment(std::uint32_t segment);

    std::uint32_t segment_blocks() const { return segment_blocks_; }
    SpaceUse use() const;
    bool is_used(std::uint64_t block) const;

private:
    enum class Owner : std::uint8_t { kNobody, kData, kLog };
    struct Segment {
        Owner owner = Owner::kNobody;
        std::uint32_t used = 0;  // Of data: blocks given out, or waiting.
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
    template <typename Visit>
    bool each_segment(Place place, Visit visit) const;
    bool any_used(Place place) const;
    void set(Place place, bool used);
    // Whether data may be put into it.
    bool is_for_data(const Segment& segment) const {
        return segment.owner == Owner::kData
                   ? segment.used < segment_blocks_
                   : segment.owner == Owner::kNobody && empty_segments_ > log_reserve_segments_;
    }
    bool next_segment();
    std::optional<Place> take_run(std::uint32_t count);

    const std::uint64_t first_block_;
    const std::uint32_t segment_blocks_;
    const std::uint32_t log_reserve_segments_;
    std::vector<Segment> segments_;
    std::vector<std::uint64_t> used_;   // A bit for each block.
    std::uint32_t current_ = 0;         // Where blocks are given out,
    std::uint64_t cursor_ = 0;          // from here on.
    std::uint64_t free_blocks_ = 0;     // Of data segments and of nobody's.
    std::uint32_t empty_segments_ = 0;  // Nobody's.
    std::uint32_t log_segments_ = 0;
    std::deque<Waiting> waiting_;  // In the order of release.
    std::uint64_t waiting_blocks_ = 0;
    std::uint64_t settled_ = 0;
    std::uint64_t releases_ = 0;
    core::IntrusiveList<Reading> readings_;  // The oldest first.
};

}  // namespace fopd::store
