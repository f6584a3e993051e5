#include "core/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/ensure.h"

namespace fopd::core {

// A value with b significant bits belongs to group b - 4 (group 0 for small values); its next four
// bits select the bucket.
std::size_t Histogram::bucket_of(std::uint64_t value) {
    if (value < kSubBuckets) return value;
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - 5;
    return (shift + 1) * kSubBuckets + ((value >> shift) & (kSubBuckets - 1));
}

std::uint64_t Histogram::largest_in(std::size_t bucket) {
    if (bucket < kSubBuckets) return bucket;
    const std::size_t shift = bucket / kSubBuckets - 1;
    const std::uint64_t low = (kSubBuckets + bucket % kSubBuckets) << shift;
    return low + ((1ULL << shift) - 1);
}

void Histogram::record(std::uint64_t value) {
    add(buckets_[bucket_of(value)], 1);
    add(count_, 1);
    add(sum_, value);
    if (value > max()) max_.store(value, std::memory_order_relaxed);
}

std::uint64_t Histogram::percentile(double share) const {
    ENSURE(share >= 0 && share <= 1);
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count())));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
        seen += buckets_[bucket].load(std::memory_order_relaxed);
        if (seen > 0 && seen >= wanted) return std::min(largest_in(bucket), max());
    }
    return max();
}

std::uint64_t Histogram::count_up_to(std::uint64_t limit) const {
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < kBucketCount && largest_in(bucket) <= limit; ++bucket) {
        seen += buckets_[bucket].load(std::memory_order_relaxed);
    }
    return seen;
}

void Histogram::merge(const Histogram& other) {
    for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
        add(buckets_[bucket], other.buckets_[bucket].load(std::memory_order_relaxed));
    }
    add(count_, other.count());
    add(sum_, other.sum());
    max_.store(std::max(max(), other.max()), std::memory_order_relaxed);
}

}  // namespace fopd::core
