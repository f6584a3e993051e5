#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/time.h"

namespace fopd::core {

// A histogram of values. Values up to 15 are exact; larger values fall into buckets at most 1/16 of
// the value wide. One thread writes, any thread may read. Uses constant memory (8 KiB).
class Histogram {
public:
    void record(std::uint64_t value);
    void record(Duration span) {
        record(span.count() > 0 ? static_cast<std::uint64_t>(span.count()) : 0);
    }

    std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
    std::uint64_t sum() const { return sum_.load(std::memory_order_relaxed); }
    std::uint64_t max() const { return max_.load(std::memory_order_relaxed); }
    // The smallest known value such that at least this share of the values is not larger; at most
    // 1/16 too large. 0 if there are no values. REQUIRES: 0 <= share <= 1.
    std::uint64_t percentile(double share) const;
    // The number of values that are certainly at most `limit`: buckets that extend above it are not
    // counted.
    std::uint64_t count_up_to(std::uint64_t limit) const;
    // Adds the values of `other`. On the writing thread.
    void merge(const Histogram& other);

private:
    static constexpr std::size_t kSubBuckets = 16;
    static constexpr std::size_t kBucketCount = (64 - 4 + 1) * kSubBuckets;

    static std::size_t bucket_of(std::uint64_t value);
    static std::uint64_t largest_in(std::size_t bucket);
    static void add(std::atomic<std::uint64_t>& to, std::uint64_t amount) {
        to.store(to.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }

    std::array<std::atomic<std::uint64_t>, kBucketCount> buckets_{};
    std::atomic<std::uint64_t> count_ = 0;
    std::atomic<std::uint64_t> sum_ = 0;
    std::atomic<std::uint64_t> max_ = 0;
};

}  // namespace fopd::core
