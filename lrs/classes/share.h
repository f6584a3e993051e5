#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "eh/handler.h"
#include "lrs/classes/ticks.h"

namespace fopd::lrs {

// A part of a rate that several nodes share; kWholeShare is all of it.
using Share = std::uint32_t;
inline constexpr int kShareBits = 22;
inline constexpr Share kWholeShare = (Share{1} << kShareBits) - 1;

// The cost of a request, in time, for a node that has this share of the rate. `cost` is the cost
// with the whole rate. REQUIRES: share > 0.
inline Ticks cost_by(Ticks cost, Share share) {
    if (share == kWholeShare) return cost;
    __extension__ using Wide = __int128;
    const Wide more = (static_cast<Wide>(cost) * kWholeShare + share - 1) / share;
    return more > kTicksMax ? kTicksMax : static_cast<Ticks>(more);
}

// A short number by which an epoch is recognised: successive epochs have different tags, and other
// epochs almost always have. Never 0.
constexpr std::uint32_t epoch_tag(eh::EpochNumber epoch) {
    constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15;
    const std::uint64_t mixed = (static_cast<std::uint64_t>(epoch) * kGolden) >> 44;
    return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(mixed));
}

// A node's shares of a rate in two epochs: the last epoch that changed them and the epoch before
// it. The node uses the smaller of the two. So a share that shrinks is used at once, and a share
// that grows is used an epoch later, when the other nodes have given up theirs
// (docs/decisions/0065-limits-of-a-cluster.md).
struct EpochShares {
    std::uint32_t tag = 0;  // epoch_tag() of the last epoch; 0: there was none.
    Share before = 0;
    Share now = 0;

    Share usable() const { return std::min(before, now); }
    friend bool operator==(const EpochShares&, const EpochShares&) = default;
};

// The shares of a node, stored as one atomic number. Any thread; lock-free.
class ShareCell {
public:
    EpochShares get() const { return unpacked(word_.load(std::memory_order_relaxed)); }
    void set(const EpochShares& shares) { word_.store(packed(shares), std::memory_order_relaxed); }
    // Replaces `seen` by `by`. If other shares are stored, changes nothing, sets `seen` to them and
    // returns false.
    bool replace(EpochShares& seen, const EpochShares& by) {
        std::uint64_t word = packed(seen);
        if (word_.compare_exchange_strong(word, packed(by), std::memory_order_relaxed)) return true;
        seen = unpacked(word);
        return false;
    }

private:
    static constexpr std::uint64_t packed(const EpochShares& of) {
        return (std::uint64_t{of.tag} << (2 * kShareBits)) |
               (std::uint64_t{of.before} << kShareBits) | of.now;
    }
    static constexpr EpochShares unpacked(std::uint64_t word) {
        return {.tag = static_cast<std::uint32_t>(word >> (2 * kShareBits)),
                .before = static_cast<Share>(word >> kShareBits) & kWholeShare,
                .now = static_cast<Share>(word) & kWholeShare};
    }

    std::atomic<std::uint64_t> word_ = 0;
};

}  // namespace fopd::lrs
