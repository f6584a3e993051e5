#include "lrs/classes/bucket_table.h"

#include <bit>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

constexpr int kWays = 3;
constexpr int kLaneBits = 16;
constexpr std::uint64_t kLaneMask = (std::uint64_t{1} << kLaneBits) - 1;
constexpr std::uint64_t kOneGroupChange = std::uint64_t{1} << (kWays * kLaneBits);

constexpr std::uint64_t lane_of(std::uint64_t group, int lane) {
    return (group >> (lane * kLaneBits)) & kLaneMask;
}
constexpr std::uint64_t with_lane(std::uint64_t group, int lane, std::uint64_t number) {
    const std::uint64_t mask = kLaneMask << (lane * kLaneBits);
    return ((group & ~mask) | (number << (lane * kLaneBits))) + kOneGroupChange;
}

// The state of an entry: the number of users in the lower 15 bits, a flag while it belongs to a
// class, and above them a count of uses. So an entry whose value is the same twice was not used in
// between. An entry that was never used is zero.
constexpr std::uint64_t kUsersMask = 0x7fff;
constexpr std::uint64_t kOfAClass = 0x8000;
constexpr std::uint64_t kOneUse = 0x10000;

constexpr std::uint64_t kFreeMask = 0xffff'ffff;
constexpr std::uint64_t kOneFreeChange = std::uint64_t{1} << 32;

// Entries examined for retirement when a new one is needed and none is free.
constexpr std::uint32_t kLooksMax = 64;

}  // namespace

struct alignas(64) BucketTable::Cell : Bucket {
    std::atomic<std::uint64_t> hash_high = 0;
    std::atomic<std::uint64_t> hash_low = 0;
    std::atomic<std::uint64_t> use = 0;
    std::atomic<std::uint32_t> next_free = 0;

    ClassHash hash() const {
        return {.high = hash_high.load(std::memory_order_relaxed),
                .low = hash_low.load(std::memory_order_relaxed)};
    }
    void prepare(const ClassHash& hash, const BucketStart& from) {
        start(from);
        hash_high.store(hash.high, std::memory_order_relaxed);
        hash_low.store(hash.low, std::memory_order_relaxed);
        use.fetch_add(kOneUse + 1, std::memory_order_relaxed);
        use.fetch_or(kOfAClass, std::memory_order_release);
    }
    // REQUIRES: prepare() was called, and the entry was not published.
    void take_back() {
        // Another thread that knew the entry from its earlier use may be looking at it.
        use.fetch_and(~kOfAClass, std::memory_order_relaxed);
        leave();
    }
    bool is_retired() const { return (use.load(std::memory_order_acquire) & kOfAClass) == 0; }
    bool enter() {
        std::uint64_t seen = use.load(std::memory_order_relaxed);
        do {
            if ((seen & kOfAClass) == 0) return false;
        } while (!use.compare_exchange_weak(seen, seen + kOneUse + 1, std::memory_order_acq_rel,
                                            std::memory_order_relaxed));
        return true;
    }
    void leave() { use.fetch_sub(1, std::memory_order_release); }
    // Fails if the entry has a user, had one meanwhile, or is not full.
    bool retire(Ticks now) {
        std::uint64_t seen = use.load(std::memory_order_acquire);
        if ((seen & (kUsersMask | kOfAClass)) != kOfAClass) return false;
        if (!is_full(now)) return false;
        return use.compare_exchange_strong(seen, seen & ~kOfAClass, std::memory_order_acq_rel);
    }
};

BucketTable::BucketTable(const HashKey& key, std::size_t capacity)
    : key_(key),
      capacity_(capacity),
      group_mask_(std::bit_ceil(capacity * 2) - 1),
      cells_(capacity),
      groups_(group_mask_ + 1) {
    ENSURE(capacity >= 1);
    ENSURE(capacity <= kCapacityMax);
}

BucketTable::~BucketTable() = default;

Bucket* BucketTable::acquire(const ClassHash& hash, Ticks now, const BucketStart& start) {
    Group& group = group_of(hash);
    for (;;) {
        std::uint64_t seen = group.load(std::memory_order_acquire);
        if (Cell* const cell = find(seen, hash)) {
            if (!cell->enter()) continue;
            // The group is unchanged, so the entry belongs to the class; while it has a user, it
            // stays.
            if (group.load(std::memory_order_acquire) == seen) return cell;
            cell->leave();
            continue;
        }

        int lane = 0;
        while (lane < kWays && lane_of(seen, lane) != 0) ++lane;
        if (lane == kWays) {
            if (!retire_one_of(group, now)) return nullptr;
            continue;
        }
        Cell* const cell = take_free();
        if (cell == nullptr) {
            if (!retire_some(now)) return nullptr;
            continue;
        }
        cell->prepare(hash, start);
        const auto number = static_cast<std::uint64_t>(cell - cells_.get()) + 1;
        if (group.compare_exchange_strong(seen, with_lane(seen, lane, number),
                                          std::memory_order_acq_rel, std::memory_order_relaxed)) {
            count_.fetch_add(1, std::memory_order_relaxed);
            return cell;
        }
        cell->take_back();
        put_free(*cell);
    }
}

void BucketTable::release(Bucket& bucket) {
    auto& cell = static_cast<Cell&>(bucket);
    ENSURE(&cell >= cells_.get());
    ENSURE(&cell < cells_.get() + capacity_);
    cell.leave();
}

// The class's entry, unless it is being retired.
BucketTable::Cell* BucketTable::find(std::uint64_t group, const ClassHash& hash) {
    for (int lane = 0; lane < kWays; ++lane) {
        const std::uint64_t number = lane_of(group, lane);
        if (number == 0) continue;
        Cell& cell = cells_[number - 1];
        if (!cell.is_retired() && cell.hash() == hash) return &cell;
    }
    return nullptr;
}

bool BucketTable::retire_one_of(Group& group, Ticks now) {
    const std::uint64_t seen = group.load(std::memory_order_acquire);
    for (int lane = 0; lane < kWays; ++lane) {
        const std::uint64_t number = lane_of(seen, lane);
        if (number == 0) return true;
        if (retire(cells_[number - 1], now)) return true;
    }
    return false;
}

bool BucketTable::retire_some(Ticks now) {
    for (std::uint32_t i = 0; i < kLooksMax; ++i) {
        const std::uint32_t number = hand_.fetch_add(1, std::memory_order_relaxed);
        if (retire(cells_[number % capacity_], now)) return true;
    }
    return false;
}

// Removes an unused full entry from its group and frees it.
bool BucketTable::retire(Cell& cell, Ticks now) {
    if (!cell.retire(now)) return false;
    const auto number = static_cast<std::uint64_t>(&cell - cells_.get()) + 1;
    Group& group = group_of(cell.hash());
    std::uint64_t seen = group.load(std::memory_order_acquire);
    for (;;) {
        int lane = 0;
        while (lane < kWays && lane_of(seen, lane) != number) ++lane;
        ENSURE(lane < kWays);
        if (group.compare_exchange_weak(seen, with_lane(seen, lane, 0), std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
            break;
        }
    }
    count_.fetch_sub(1, std::memory_order_relaxed);
    put_free(cell);
    return true;
}

BucketTable::Cell* BucketTable::take_free() {
    std::uint64_t seen = free_.load(std::memory_order_acquire);
    for (;;) {
        const std::uint64_t number = seen & kFreeMask;
        if (number == 0) return take_unused();
        Cell& cell = cells_[number - 1];
        const std::uint64_t next = cell.next_free.load(std::memory_order_relaxed);
        const std::uint64_t changed = (seen & ~kFreeMask) + kOneFreeChange;
        if (free_.compare_exchange_weak(seen, changed | next, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
            return &cell;
        }
    }
}

BucketTable::Cell* BucketTable::take_unused() {
    std::size_t index = unused_from_.load(std::memory_order_relaxed);
    do {
        if (index == capacity_) return nullptr;
    } while (!unused_from_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    return &cells_[index];
}

void BucketTable::put_free(Cell& cell) {
    const auto number = static_cast<std::uint64_t>(&cell - cells_.get()) + 1;
    std::uint64_t seen = free_.load(std::memory_order_relaxed);
    for (;;) {
        cell.next_free.store(static_cast<std::uint32_t>(seen & kFreeMask),
                             std::memory_order_relaxed);
        const std::uint64_t changed = (seen & ~kFreeMask) + kOneFreeChange;
        if (free_.compare_exchange_weak(seen, changed | number, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
            return;
        }
    }
}

}  // namespace fopd::lrs
