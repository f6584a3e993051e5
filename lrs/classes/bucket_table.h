#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/zeroed_array.h"
#include "lrs/classes/bucket.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// The buckets of a node, one per class. All localities share them, so a limit applies to the node,
// however many localities it has. A locality looks a class's bucket up once, and keeps it as long
// as it knows the class. Memory is bounded; any thread; lock-free.
class BucketTable {
public:
    static constexpr std::size_t kCapacityMax = 65535;
    static constexpr std::size_t kCapacity = 32768;

    // `key` is a secret of the node: without it, a client cannot construct two classes that share a
    // bucket.
    explicit BucketTable(const HashKey& key, std::size_t capacity = kCapacity);
    ~BucketTable();
    BucketTable(const BucketTable&) = delete;
    BucketTable& operator=(const BucketTable&) = delete;

    const HashKey& key() const { return key_; }

    // The bucket of the class; a new one begins with `start`. Null if there is no room. Unused full
    // buckets make room for new ones.
    Bucket* acquire(const ClassHash& hash, Ticks now, const BucketStart& start = {});
    // REQUIRES: acquire() returned it, and it was not released since.
    void release(Bucket& bucket);

    // Buckets that are in use, or were not full when last checked.
    std::size_t count() const { return count_.load(std::memory_order_relaxed); }

private:
    struct Cell;
    // Up to three entries of cells_, each as index + 1, and a change count, 16 bits each. All
    // change in one atomic step, so no class is ever in a group twice.
    using Group = std::atomic<std::uint64_t>;

    Group& group_of(const ClassHash& hash) { return groups_[hash.low & group_mask_]; }
    Cell* find(std::uint64_t group, const ClassHash& hash);
    bool retire_one_of(Group& group, Ticks now);
    bool retire_some(Ticks now);
    bool retire(Cell& cell, Ticks now);
    Cell* take_free();
    Cell* take_unused();
    void put_free(Cell& cell);

    const HashKey key_;
    const std::size_t capacity_;
    const std::size_t group_mask_;
    const core::ZeroedArray<Cell> cells_;
    const core::ZeroedArray<Group> groups_;
    // The entries from this index on were never used.
    std::atomic<std::size_t> unused_from_ = 0;
    // The first entry that is free again as index + 1, and in the upper half a change count.
    std::atomic<std::uint64_t> free_ = 0;
    std::atomic<std::size_t> count_ = 0;
    std::atomic<std::uint32_t> hand_ = 0;
};

}  // namespace fopd::lrs
