#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lrs/classes/bucket.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// The buckets of a node, one for each class, which its localities share: so a limit is that of the
// node however many of them there are. A locality looks a class's bucket up once, and keeps it for
// as long as it knows the class. Bounded memory; any thread; nobody waits for anybody.
class BucketTable {
public:
    static constexpr std::size_t kCapacityMax = 65535;
    static constexpr std::size_t kCapacity = 32768;

    // `key` is a secret of the node: without it nobody makes two classes share a bucket.
    explicit BucketTable(const HashKey& key, std::size_t capacity = kCapacity);
    ~BucketTable();
    BucketTable(const BucketTable&) = delete;
    BucketTable& operator=(const BucketTable&) = delete;

    const HashKey& key() const { return key_; }

    // The bucket of the class, which is made, and begins as `start`, when there is none. Null when
    // no more are to be had. Buckets that nobody uses, and that are full, make room for others.
    Bucket* acquire(const ClassHash& hash, Ticks now, const BucketStart& start = {});
    // Requires: acquire() gave it out, and it was not released since.
    void release(Bucket& bucket);

    // In use, or not full when it was last looked at.
    std::size_t count() const { return count_.load(std::memory_order_relaxed); }

private:
    struct Place;
    // Up to three places, by number + 1, and how often that has changed, 16 bits each: what a group
    // holds changes in one step, so that no class is ever in it twice.
    using Group = std::atomic<std::uint64_t>;

    Group& group_of(const ClassHash& hash) { return groups_[hash.low & group_mask_]; }
    Place* find(std::uint64_t group, const ClassHash& hash);
    bool retire_one_of(Group& group, Ticks now);
    bool retire_some(Ticks now);
    bool retire(Place& place, Ticks now);
    Place* take_free();
    void put_free(Place& place);

    const HashKey key_;
    const std::size_t capacity_;
    const std::size_t group_mask_;
    const std::unique_ptr<Place[]> places_;
    const std::unique_ptr<Group[]> groups_;
    // The first free place by number + 1, and above it how often that has changed.
    std::atomic<std::uint64_t> free_ = 0;
    std::atomic<std::size_t> count_ = 0;
    std::atomic<std::uint32_t> hand_ = 0;
};

}  // namespace fopd::lrs
