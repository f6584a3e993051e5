// Goal: no block ever has two owners, and a freed one is given out again only when nobody can need
// what it holds.
// Method: examples, and random use of the allocator beside a model that remembers each block.

#include "store/allocator.h"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::store {
namespace {

constexpr std::uint64_t kSegmentBlocks = 64;

Allocator::Options small_disk(std::uint32_t segments, std::uint32_t freeing_reserve = 0) {
    // The first segment is not the allocator's, and the end is no whole segment.
    return {.disk_blocks = (segments + 1) * kSegmentBlocks + 5,
            .first_block = kSegmentBlocks,
            .segment_blocks = kSegmentBlocks,
            .freeing_reserve_blocks = freeing_reserve};
}

TEST_CASE("allocator: successive allocations are consecutive", "[store]") {
    Allocator allocator(small_disk(4));

    const auto one = allocator.allocate(3);
    const auto two = allocator.allocate(10);

    REQUIRE(one == DiskRange{.block = kSegmentBlocks, .count = 3});
    REQUIRE(two == DiskRange{.block = kSegmentBlocks + 3, .count = 10});
}

TEST_CASE("allocator: a run ends with its segment, and the next begins a new one", "[store]") {
    Allocator allocator(small_disk(4));
    const auto most = allocator.allocate(60);

    const auto rest = allocator.allocate(60);
    const auto next = allocator.allocate(60);

    REQUIRE(most->count == 60);
    REQUIRE(rest == DiskRange{.block = kSegmentBlocks + 60, .count = 4});
    REQUIRE(next == DiskRange{.block = 2 * kSegmentBlocks, .count = 60});
}

TEST_CASE("allocator: a full disk gives nothing, and has no free block", "[store]") {
    Allocator allocator(small_disk(3));
    std::uint64_t blocks = 0;
    while (const auto range = allocator.allocate(50)) blocks += range->count;

    REQUIRE(blocks == 3 * kSegmentBlocks);
    REQUIRE(allocator.use().free_blocks == 0);
    REQUIRE_FALSE(allocator.allocate_segment().has_value());
}

TEST_CASE("allocator: a segment that is held is free, and not to be had yet", "[store]") {
    Allocator allocator(small_disk(8));
    const auto held = allocator.hold_ahead(kSegmentBlocks);
    REQUIRE(held.has_value());

    REQUIRE(allocator.use().free_blocks == 8 * kSegmentBlocks);
    REQUIRE(allocator.blocks_for_data() == 7 * kSegmentBlocks);
    allocator.end_hold(*held, Allocator::Content::kFilled);
    REQUIRE(allocator.blocks_for_data() == 8 * kSegmentBlocks);
}

TEST_CASE("allocator: data leaves the log's reserve alone", "[store]") {
    Allocator allocator(small_disk(3));
    allocator.set_log_claim(2);
    std::uint64_t blocks = 0;
    while (const auto range = allocator.allocate(50)) blocks += range->count;

    REQUIRE(blocks == kSegmentBlocks);
    REQUIRE(allocator.use().free_blocks == 0);
    REQUIRE(allocator.allocate_segment().has_value());
    REQUIRE(allocator.allocate_segment().has_value());
}

TEST_CASE("allocator: segments that the log has count against its claim", "[store]") {
    Allocator allocator(small_disk(4));
    allocator.set_log_claim(2);
    const std::uint64_t free_blocks = allocator.use().free_blocks;
    REQUIRE(free_blocks == 2 * kSegmentBlocks);

    REQUIRE(allocator.allocate_segment().has_value());
    REQUIRE(allocator.use().free_blocks == free_blocks);
    REQUIRE(allocator.allocate_segment().has_value());
    REQUIRE(allocator.use().free_blocks == free_blocks);
    REQUIRE(allocator.allocate_segment().has_value());
    REQUIRE(allocator.use().free_blocks == free_blocks - kSegmentBlocks);
}

TEST_CASE("allocator: the last blocks are for changes that free", "[store]") {
    Allocator allocator(small_disk(2, 5));
    std::uint64_t blocks = 0;
    while (const auto range = allocator.allocate(50)) blocks += range->count;
    REQUIRE(blocks == 2 * kSegmentBlocks - 5);
    REQUIRE(allocator.use().free_blocks == 0);

    for (int i = 0; i < 5; ++i) REQUIRE(allocator.allocate(1, Purpose::kFreeing).has_value());
    REQUIRE_FALSE(allocator.allocate(1, Purpose::kFreeing).has_value());
}

TEST_CASE("allocator: what was freed waits for its record", "[store]") {
    Allocator allocator(small_disk(1));
    const auto range = allocator.allocate(kSegmentBlocks);

    allocator.release(*range, 7);
    allocator.settle(6);
    const auto too_early = allocator.allocate(1);
    allocator.settle(7);
    const auto in_time = allocator.allocate(1);

    REQUIRE_FALSE(too_early.has_value());
    REQUIRE(in_time.has_value());
}

TEST_CASE("allocator: what was freed waits for reads that began before, and for no other",
          "[store]") {
    Allocator allocator(small_disk(1));
    const auto range = allocator.allocate(kSegmentBlocks);
    auto before = std::make_unique<Reading>();
    allocator.begin_read(*before);

    allocator.release(*range, 1);
    Reading after;
    allocator.begin_read(after);
    allocator.settle(1);
    const auto too_early = allocator.allocate(1);
    before.reset();
    allocator.settle(1);
    const auto in_time = allocator.allocate(1);

    REQUIRE_FALSE(too_early.has_value());
    REQUIRE(in_time.has_value());
}

TEST_CASE("allocator: reads that rest can be ended, and learn it", "[store]") {
    Allocator allocator(small_disk(1));
    const auto range = allocator.allocate(kSegmentBlocks);
    Reading active;
    Reading resting;
    allocator.begin_read(active);
    allocator.begin_read(resting);
    active.rest();
    const bool goes_on = active.go_on();
    resting.rest();
    allocator.release(*range, 1);
    allocator.end_resting_reads();
    allocator.settle(1);
    const auto delayed = allocator.allocate(1);
    active.rest();
    allocator.end_resting_reads();
    allocator.settle(1);
    const auto in_time = allocator.allocate(1);

    REQUIRE(goes_on);
    REQUIRE_FALSE(delayed.has_value());
    REQUIRE(in_time.has_value());
    REQUIRE_FALSE(resting.go_on());
    REQUIRE_FALSE(active.go_on());
}

TEST_CASE("allocator: a range that was never used continues the run", "[store]") {
    Allocator allocator(small_disk(2));
    const auto first = allocator.allocate(8);
    const auto given_up = allocator.allocate(8);

    allocator.give_back(*given_up);

    REQUIRE(allocator.allocate(4)->block == first->block + 8);
}

TEST_CASE("allocator: a claim of the log that rises leaves blocks for what frees", "[store]") {
    Allocator allocator(small_disk(5, 4));
    // All that adding may have of three segments; two are the log's claim.
    allocator.set_log_claim(2);
    while (allocator.allocate(kSegmentBlocks)) {
    }
    const auto freed = allocator.range_of(1);
    allocator.release(freed, 1);
    allocator.settle(1);
    allocator.set_log_claim(5);
    for (int i = 0; i < 4; ++i) REQUIRE(allocator.allocate(1, Purpose::kFreeing).has_value());

    REQUIRE(allocator.blocks_for_data() == 0);
    REQUIRE(allocator.empty_segments() == 3);
    REQUIRE_FALSE(allocator.allocate(1).has_value());
    REQUIRE(allocator.blocks_to_free() == kSegmentBlocks);
    REQUIRE(allocator.allocate(1, Purpose::kFreeing).has_value());
    REQUIRE(allocator.empty_segments() == 2);
    REQUIRE(allocator.are_sums_right());
    for (std::uint32_t i = 0; i < 5; ++i) REQUIRE(allocator.is_counted_well(i));
}

TEST_CASE("allocator: changes that add do not use blocks borrowed from the log", "[store]") {
    Allocator allocator(small_disk(5, 4));
    allocator.set_log_claim(2);
    std::vector<DiskRange> ranges;
    while (const auto range = allocator.allocate(kSegmentBlocks)) ranges.push_back(*range);
    for (int i = 0; i < 5; ++i) REQUIRE(allocator.allocate(1, Purpose::kFreeing).has_value());
    REQUIRE(allocator.empty_segments() == 1);
    REQUIRE_FALSE(allocator.allocate(1).has_value());
    REQUIRE(allocator.use().free_blocks == 0);

    // What has been taken of the borrowed segment and of the reserve comes first.
    const auto free = [&](DiskRange range) {
        allocator.release(range, 1);
        allocator.settle(1);
    };
    free({.block = ranges[0].block, .count = 5});
    REQUIRE_FALSE(allocator.allocate(1).has_value());
    free({.block = ranges[1].block, .count = 3});
    REQUIRE(allocator.use().free_blocks == 3);
    REQUIRE(allocator.allocate(4)->count == 3);
    REQUIRE_FALSE(allocator.allocate(1).has_value());
}

TEST_CASE("allocator: the last empty segment is the log's, whoever frees", "[store]") {
    Allocator allocator(small_disk(2, 4));
    allocator.set_log_claim(1);
    while (allocator.allocate(kSegmentBlocks)) {
    }
    while (allocator.allocate(1, Purpose::kFreeing)) {
    }

    REQUIRE(allocator.empty_segments() == 1);
    REQUIRE(allocator.blocks_to_free() == 0);
}

TEST_CASE("allocator: an index that gives a block to two is corrupt", "[store]") {
    Allocator allocator(small_disk(4));
    REQUIRE(allocator.take({.block = kSegmentBlocks + 4, .count = 8}));

    const auto again = allocator.take({.block = kSegmentBlocks + 11, .count = 2});
    const auto log = allocator.take_segment(0);
    const auto beyond = allocator.take({.block = 5 * kSegmentBlocks, .count = 1});
    const auto before = allocator.take({.block = 3, .count = 1});

    for (const auto& each : {again, log, beyond, before}) {
        REQUIRE_FALSE(each.has_value());
        REQUIRE(each.error().code == Errc::kCorrupt);
    }
}

TEST_CASE("allocator: an extent may have grown over the end of a segment", "[store]") {
    Allocator allocator(small_disk(2));
    const DiskRange across{.block = 2 * kSegmentBlocks - 3, .count = 5};

    REQUIRE(allocator.take(across));
    REQUIRE_FALSE(allocator.allocate_segment().has_value());
    allocator.release(across, 1);
    allocator.settle(1);

    REQUIRE(allocator.allocate_segment().has_value());
    REQUIRE(allocator.allocate_segment().has_value());
}

TEST_CASE("allocator: a segment is the log's as a whole, or data's", "[store]") {
    Allocator allocator(small_disk(2));
    const auto data = allocator.allocate(1);

    const auto segment = allocator.allocate_segment();
    const auto none = allocator.allocate_segment();
    allocator.release_segment(*segment);
    const auto again = allocator.allocate_segment();

    REQUIRE(segment.has_value());
    REQUIRE(*segment != data->block / kSegmentBlocks - 1);
    REQUIRE_FALSE(none.has_value());
    REQUIRE(again == segment);
}

TEST_CASE("allocator: free is what nobody has, waits for, or has put the log on", "[store]") {
    Allocator allocator(small_disk(3));
    const auto data = allocator.allocate(2);
    const std::uint64_t log_block = kSegmentBlocks * *allocator.allocate_segment();
    REQUIRE(data.has_value());
    const auto is_free = [&](std::uint64_t block) { return allocator.is_free(block); };
    allocator.release({.block = data->block, .count = 1}, 7);

    REQUIRE_FALSE(is_free(data->block));
    REQUIRE_FALSE(is_free(data->block + 1));
    REQUIRE(is_free(data->block + 2));
    REQUIRE_FALSE(is_free(kSegmentBlocks + log_block));
    REQUIRE_FALSE(is_free(kSegmentBlocks - 1));
    REQUIRE_FALSE(is_free(4 * kSegmentBlocks));
    allocator.settle(7);
    REQUIRE(is_free(data->block));
}

TEST_CASE("allocator: a held segment is not allocated until the hold ends", "[store]") {
    Allocator allocator(small_disk(6));
    REQUIRE(allocator.allocate(1).has_value());

    const auto held = allocator.hold_ahead(kSegmentBlocks);
    REQUIRE(held.has_value());
    const std::uint64_t free_blocks = allocator.use().free_blocks;
    std::vector<DiskRange> ranges;
    while (const auto range = allocator.allocate(kSegmentBlocks)) ranges.push_back(*range);
    const auto log = allocator.allocate_segment();
    allocator.end_hold(*held, Allocator::Content::kFilled);
    const auto after = allocator.allocate(kSegmentBlocks);

    REQUIRE(free_blocks == 6 * kSegmentBlocks - 1);
    REQUIRE(ranges.size() == 5);
    REQUIRE_FALSE(log.has_value());
    REQUIRE(after == allocator.range_of(*held));
}

TEST_CASE("allocator: what lies ahead is held in its order, and filled once", "[store]") {
    Allocator allocator(small_disk(12));
    REQUIRE(allocator.allocate(1).has_value());
    for (const std::uint32_t segment : {1U, 2U}) {
        REQUIRE(allocator.hold_ahead(3 * kSegmentBlocks) == segment);
        allocator.end_hold(segment, Allocator::Content::kFilled);
    }
    REQUIRE(allocator.hold_ahead(3 * kSegmentBlocks) == 3);
    allocator.end_hold(3, Allocator::Content::kAny);

    REQUIRE_FALSE(allocator.hold_ahead(2 * kSegmentBlocks).has_value());
    REQUIRE(allocator.hold_ahead(3 * kSegmentBlocks) == 3);
    allocator.end_hold(3, Allocator::Content::kFilled);
    REQUIRE_FALSE(allocator.hold_ahead(3 * kSegmentBlocks).has_value());
    REQUIRE(allocator.allocate(2 * kSegmentBlocks)->count == kSegmentBlocks - 1);
    REQUIRE(allocator.allocate(1).has_value());
    REQUIRE(allocator.hold_ahead(3 * kSegmentBlocks) == 4);
}

TEST_CASE("allocator: few empty segments are left to data", "[store]") {
    Allocator allocator(small_disk(5));
    allocator.set_log_claim(1);
    REQUIRE_FALSE(allocator.hold_ahead(4 * kSegmentBlocks).has_value());
}

TEST_CASE("allocator: what stays empty is held once, and not what comes next", "[store]") {
    Allocator allocator(small_disk(12));
    const auto range = allocator.allocate(1);
    allocator.note_empty();
    REQUIRE(allocator.allocate(kSegmentBlocks).has_value());
    const auto second = allocator.allocate(kSegmentBlocks);
    allocator.release(*second, 1);
    allocator.settle(1);

    std::vector<std::uint32_t> held;
    while (const auto segment = allocator.hold_unused(2 * kSegmentBlocks)) {
        held.push_back(*segment);
        allocator.end_hold(*segment, Allocator::Content::kDiscarded);
    }
    allocator.note_empty();
    const auto again = allocator.hold_unused(2 * kSegmentBlocks);

    REQUIRE(range->block == kSegmentBlocks);
    // The next two are the one that was freed, 1, and 2.
    REQUIRE(held == std::vector<std::uint32_t>{3, 4, 5, 6, 7, 8, 9, 10, 11});
    REQUIRE_FALSE(again.has_value());
}

TEST_CASE("allocator: freed segments are used again before segments never used", "[store]") {
    constexpr std::uint32_t kDiskSegments = 200;
    Allocator allocator(small_disk(kDiskSegments));
    allocator.set_log_claim(2);
    REQUIRE(allocator.allocate_segment().has_value());
    // An object of four segments is overwritten again and again, each time to new blocks.
    std::deque<DiskRange> live;
    std::set<std::uint64_t> segments;
    std::uint64_t sequence = 0;
    for (int write = 0; write < 500; ++write) {
        const auto range = allocator.allocate(kSegmentBlocks);
        REQUIRE(range.has_value());
        segments.insert(range->block / kSegmentBlocks);
        allocator.take_up(*range);
        live.push_back(*range);
        if (live.size() <= 4) continue;
        allocator.release(live.front(), ++sequence);
        allocator.settle(sequence);
        live.pop_front();
    }
    REQUIRE(segments.size() <= 6);
    REQUIRE(allocator.are_sums_right());
}

// Every block, and who has it.
class Model {
public:
    explicit Model(std::uint64_t seed) : random_(seed), allocator_(small_disk(8)) {
        allocator_.set_log_claim(1);
    }

    void step() {
        switch (random_.below(9)) {
            case 0:
            case 1: return allocate();
            case 2: return release();
            case 3: return settle();
            case 4: return read();
            case 5: return end_read();
            case 6: return rest();
            case 7: return hold();
            default: return segment();
        }
    }

    void check() const {
        std::uint64_t free = 8 * kSegmentBlocks - used_.size();
        const SpaceUse use = allocator_.use();
        free -= std::uint64_t{segments_.size()} * kSegmentBlocks;
        std::uint64_t waiting = 0;
        for (const Freed& each : freed_) waiting += each.range.count;
        REQUIRE(use.waiting_blocks == waiting);
        REQUIRE(use.log_blocks == std::uint64_t{segments_.size()} * kSegmentBlocks);
        REQUIRE(allocator_.is_holding() == !held_.empty());
        // The reserve is not data's, if it is there.
        REQUIRE(use.free_blocks <= free);
        REQUIRE(use.free_blocks + kSegmentBlocks >= free);
    }

private:
    struct Freed {
        DiskRange range;
        std::uint64_t sequence;
        std::set<std::uint64_t> readers;
    };

    void allocate() {
        const auto count = static_cast<std::uint32_t>(1 + random_.below(40));
        const auto range = allocator_.allocate(count);
        if (!range) return;
        REQUIRE(range->count > 0);
        REQUIRE(range->count <= count);
        for (std::uint64_t block = range->block; block < range->block + range->count; ++block) {
            REQUIRE(used_.insert(block).second);
            REQUIRE(is_datas(static_cast<std::uint32_t>(block / kSegmentBlocks) - 1));
        }
        ranges_.push_back(*range);
    }
    void release() {
        if (ranges_.empty()) return;
        const std::size_t index = random_.below(ranges_.size());
        const DiskRange range = ranges_[index];
        ranges_[index] = ranges_.back();
        ranges_.pop_back();
        Freed freed{.range = range, .sequence = ++sequence_, .readers = {}};
        for (const auto& [id, reading] : readings_) freed.readers.insert(id);
        allocator_.release(range, freed.sequence);
        freed_.push_back(freed);
    }
    void settle() {
        settled_ = std::max(settled_, random_.below(sequence_ + 1));
        allocator_.settle(settled_);
        while (!freed_.empty()) {
            const Freed& first = freed_.front();
            if (first.sequence > settled_ || !first.readers.empty()) return;
            for (std::uint32_t i = 0; i < first.range.count; ++i)
                used_.erase(first.range.block + i);
            freed_.pop_front();
        }
    }
    void read() {
        auto reading = std::make_unique<Reading>();
        allocator_.begin_read(*reading);
        readings_.emplace(++read_count_, std::move(reading));
    }
    void end_read() {
        if (readings_.empty()) return;
        const auto ended =
            std::next(readings_.begin(), static_cast<long>(random_.below(readings_.size())));
        for (Freed& each : freed_) each.readers.erase(ended->first);
        readings_.erase(ended);
    }
    void rest() {
        if (readings_.empty()) return;
        const auto resting =
            std::next(readings_.begin(), static_cast<long>(random_.below(readings_.size())));
        resting->second->rest();
        if (random_.below(2) == 0) REQUIRE(resting->second->go_on());
        if (random_.below(4) == 0) end_resting_reads();
    }
    void end_resting_reads() {
        allocator_.end_resting_reads();
        std::erase_if(readings_, [this](const auto& reading) {
            if (reading.second->linked()) return false;
            for (Freed& each : freed_) each.readers.erase(reading.first);
            return true;
        });
    }
    void segment() {
        if (!segments_.empty() && random_.below(2) == 0) {
            allocator_.release_segment(*segments_.begin());
            segments_.erase(segments_.begin());
            return;
        }
        const auto segment = allocator_.allocate_segment();
        if (!segment) return;
        REQUIRE(is_empty(*segment));
        segments_.insert(*segment);
    }
    void hold() {
        if (!held_.empty() && random_.below(2) == 0) {
            allocator_.end_hold(*held_.begin(), static_cast<Allocator::Content>(random_.below(3)));
            held_.erase(held_.begin());
            return;
        }
        if (random_.below(4) == 0) allocator_.note_empty();
        const std::uint64_t ahead = random_.below(8) * kSegmentBlocks;
        const auto segment =
            random_.below(2) == 0 ? allocator_.hold_ahead(ahead) : allocator_.hold_unused(ahead);
        if (!segment) return;
        REQUIRE(is_empty(*segment));
        held_.insert(*segment);
    }
    bool is_datas(std::uint32_t segment) const {
        return !segments_.contains(segment) && !held_.contains(segment);
    }
    bool is_empty(std::uint32_t segment) const {
        const std::uint64_t first = (std::uint64_t{segment} + 1) * kSegmentBlocks;
        const auto used = used_.lower_bound(first);
        return is_datas(segment) && (used == used_.end() || *used >= first + kSegmentBlocks);
    }

    core::Random random_;
    Allocator allocator_;
    std::set<std::uint64_t> used_;
    std::vector<DiskRange> ranges_;
    std::deque<Freed> freed_;
    std::set<std::uint32_t> segments_;  // Of the log.
    std::set<std::uint32_t> held_;
    std::map<std::uint64_t, std::unique_ptr<Reading>> readings_;
    std::uint64_t read_count_ = 0;
    std::uint64_t sequence_ = 0;
    std::uint64_t settled_ = 0;
};

TEST_CASE("allocator: random use agrees with a model of each block", "[store]") {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        CAPTURE(seed);
        Model model(seed);
        for (int i = 0; i < 1000; ++i) {
            model.step();
            model.check();
        }
    }
}

}  // namespace

TEST_CASE("allocator: a fault of a range names its first bad block", "[store]") {
    Allocator allocator(small_disk(4));
    REQUIRE(allocator.take_segment(1).has_value());
    const auto range = allocator.allocate(8);

    REQUIRE_FALSE(allocator.fault_of(*range).has_value());
    const auto behind = allocator.fault_of({.block = range->block + 4, .count = 8});
    REQUIRE(behind->block == range->block + 8);
    REQUIRE(std::string_view(behind->reason) == "is free");
    const auto log = allocator.fault_of({.block = 2 * kSegmentBlocks + 3, .count = 1});
    REQUIRE(std::string_view(log->reason) == "is in a segment of the log");
    REQUIRE(allocator.fault_of({.block = 3, .count = 1}).has_value());
    REQUIRE(allocator.fault_of({.block = ~0ULL, .count = 1}).has_value());
    REQUIRE(allocator.fault_of({.block = range->block, .count = ~0U}).has_value());
}

TEST_CASE("allocator: a watch hears of every range that changes hands", "[store]") {
    class Heard final : public SpaceWatch {
    public:
        void touched(DiskRange range) override { touched_ranges.push_back(range); }
        void settled(DiskRange range) override { settled_ranges.push_back(range); }
        std::vector<DiskRange> touched_ranges;
        std::vector<DiskRange> settled_ranges;
    };
    Allocator allocator(small_disk(4));
    const auto before = allocator.allocate(2);
    Heard heard;
    allocator.set_watch(&heard);

    const auto range = allocator.allocate(8);
    REQUIRE(allocator.promised_blocks() == 10);
    allocator.take_up(*range);
    REQUIRE(allocator.promised_blocks() == 2);
    allocator.give_back(*before);
    REQUIRE(allocator.promised_blocks() == 0);
    allocator.release(*range, 1);

    REQUIRE(heard.touched_ranges == std::vector{*range, *range});
    REQUIRE(heard.settled_ranges == std::vector{*range, *before});
    allocator.set_watch(nullptr);
    REQUIRE(allocator.are_sums_right());
    for (std::uint32_t i = 0; i < allocator.segment_count(); ++i) {
        REQUIRE(allocator.is_counted_well(i));
    }
}

}  // namespace fopd::store
