#pragma once

#include <algorithm>
#include <atomic>

#include "lrs/classes/pace.h"
#include "lrs/classes/share.h"
#include "lrs/classes/ticks.h"

namespace fopd::lrs {

// A token bucket as one number: the time at which all tokens taken so far will have been refilled.
// No token can be taken earlier than that time less `depth`. Any thread; lock-free.
class Meter {
public:
    // The earliest time at which `cost` can be taken, as far as known now. A cost beyond the
    // bucket's depth can be taken when the bucket is full.
    Ticks ready_at(Ticks cost, Ticks depth) const {
        return paid_at_.load(std::memory_order_relaxed) + std::min(cost, depth) - depth;
    }

    // Takes `cost` for a request that has waited since `since`. Tokens that a full bucket gained
    // since then are not lost, up to `cost`: so a class that is asked late is not slowed down.
    bool take(Ticks now, Ticks since, Ticks cost, Ticks depth) {
        const Ticks needed = std::min(cost, depth);
        const Ticks start = std::min(now, std::max(since, now - needed));
        return take_from(start, now + depth - needed, cost);
    }
    // Takes `cost` at the time `start` or later; fails if that would be after `latest`.
    bool take_from(Ticks start, Ticks latest, Ticks cost) {
        Ticks paid_at = paid_at_.load(std::memory_order_relaxed);
        for (;;) {
            const Ticks base = std::max(paid_at, start);
            if (base > latest) return false;
            if (paid_at_.compare_exchange_weak(paid_at, base + cost, std::memory_order_relaxed)) {
                return true;
            }
        }
    }
    // REQUIRES: `cost` was taken.
    void give_back(Ticks cost) { paid_at_.fetch_sub(cost, std::memory_order_relaxed); }

    // Changes the part of the cluster's rate that this meter has from `from` to `to`. The number of
    // tokens stays the same, but not more than the burst, which is divided like the rate. Debts do
    // not change.
    void change_share(Share from, Share to, Ticks now, Ticks depth);
    // Tokens from before `time` are lost.
    void empty_at(Ticks time, Ticks depth) {
        Ticks paid_at = paid_at_.load(std::memory_order_relaxed);
        while (paid_at < time + depth &&
               !paid_at_.compare_exchange_weak(paid_at, time + depth, std::memory_order_relaxed)) {
        }
    }

    Ticks paid_at() const { return paid_at_.load(std::memory_order_relaxed); }
    void set_paid_at(Ticks ticks) { paid_at_.store(ticks, std::memory_order_relaxed); }

private:
    std::atomic<Ticks> paid_at_ = 0;
};

// The tokens that a request takes from the two meters of a bucket.
struct Charge {
    Ticks operation = 0;
    Ticks bytes = 0;
};

// The initial state of a bucket that does not begin full.
struct BucketStart {
    Ticks operations_paid_at = 0;
    Ticks bytes_paid_at = 0;
};

// The two meters of a class. A request needs enough tokens in both.
class Bucket {
public:
    Ticks ready_at(const Charge& charge, const Paces& paces) const {
        Ticks ready = 0;
        if (paces.operations.is_limit()) {
            ready = operations.ready_at(charge.operation, paces.operations.depth());
        }
        if (paces.bytes.is_limit()) {
            ready = std::max(ready, bytes.ready_at(charge.bytes, paces.bytes.depth()));
        }
        return ready;
    }

    // Takes from both meters or from neither. REQUIRES: not blocked.
    bool take(Ticks now, Ticks since, const Charge& charge, const Paces& paces) {
        const bool has_operations = paces.operations.is_limit();
        if (has_operations &&
            !operations.take(now, since, charge.operation, paces.operations.depth())) {
            return false;
        }
        if (!paces.bytes.is_limit()) return true;
        if (bytes.take(now, since, charge.bytes, paces.bytes.depth())) return true;
        if (has_operations) operations.give_back(charge.operation);
        return false;
    }

    // REQUIRES: the charge was taken.
    void give_back(const Charge& charge, const Paces& paces) {
        if (paces.operations.is_limit()) operations.give_back(charge.operation);
        if (paces.bytes.is_limit()) bytes.give_back(charge.bytes);
    }

    void start(const BucketStart& start) {
        operations.set_paid_at(start.operations_paid_at);
        bytes.set_paid_at(start.bytes_paid_at);
        operations_share.set({});
        bytes_share.set({});
    }
    // Copies the shares of `other`, unless this bucket has shares already.
    void take_shares_of(const Bucket& other) {
        EpochShares none;
        operations_share.replace(none, other.operations_share.get());
        none = {};
        bytes_share.replace(none, other.bytes_share.get());
    }
    // Whether it is full at `now`, so that discarding it loses nothing.
    bool is_full(Ticks now) const { return operations.paid_at() <= now && bytes.paid_at() <= now; }

    Meter operations;
    Meter bytes;
    // The node's shares of the two rates, if the limit is that of a cluster.
    ShareCell operations_share;
    ShareCell bytes_share;
};

// The start state of a bucket that keeps the tokens `old` has left, as far as the new limits have
// room for them.
BucketStart carried_over(const Bucket& old, const Limits& old_limits, const Limits& limits,
                         Ticks now);

}  // namespace fopd::lrs
