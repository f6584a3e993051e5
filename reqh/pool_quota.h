#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/counter.h"

namespace fopd::reqh {

// What the objects of a pool may use on all disks of a node, and what they do. Each locality tells
// what those of its own disks use, and looks at the sum of all: what others have just used is seen
// a moment later, so a pool may end up above its quota by what was being written at that time.
// Any thread.
class PoolQuota {
public:
    static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

    explicit PoolQuota(std::size_t locality_count) : used_blocks_(locality_count) {}

    void set_limit(std::uint64_t blocks) { limit_blocks_.store(blocks, std::memory_order_relaxed); }
    std::uint64_t limit_blocks() const { return limit_blocks_.load(std::memory_order_relaxed); }
    bool is_limited() const { return limit_blocks() != kUnlimited; }
    // By that locality only.
    void set_used(std::uint32_t locality, std::uint64_t blocks) {
        used_blocks_[locality].set(blocks);
    }
    std::uint64_t used_blocks() const {
        std::uint64_t sum = 0;
        for (const core::Counter& each : used_blocks_) sum += each.get();
        return sum;
    }
    bool has_room(std::uint64_t blocks) const {
        return !is_limited() || used_blocks() + blocks <= limit_blocks();
    }

private:
    std::atomic<std::uint64_t> limit_blocks_ = kUnlimited;
    std::vector<core::Counter> used_blocks_;  // By locality.
};

}  // namespace fopd::reqh
