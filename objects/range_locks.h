#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/time.h"
#include "core/timer_heap.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/object_map.h"

namespace fopd::objects {

// Locks conflict only where their ranges of the same object overlap.
enum class LockMode : std::uint8_t {
    kShared,     // Compatible with other shared locks.
    kExclusive,  // Compatible with no other lock.
};

// A pseudo-block after the object's last possible block stands for the object's attributes.
inline constexpr std::uint64_t kAttributesBlock = store::kObjectBlocksMax;
inline constexpr store::BlockRange kAttributes{.first = kAttributesBlock, .count = 1};
inline constexpr store::BlockRange kWholeObject{.first = 0, .count = kAttributesBlock + 1};

// A range of blocks of an object to lock, and the mode of the lock.
struct LockRequest {
    store::Fid fid{};
    store::BlockRange range{};
    LockMode mode = LockMode::kShared;
};

// The attributes of an object that each write changes.
struct ObjectState {
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    WallTime changed{};

    friend bool operator==(const ObjectState& one, const ObjectState& other) {
        return one.size_bytes == other.size_bytes && one.version == other.version &&
               one.changed.unix_ns == other.changed.unix_ns;
    }
};

class RangeLocks;

// The list node of a RangeLock in its hash bucket.
class LockPlace : public core::ListNode {};

// A lock of one fop, or its wait for a lock. Owned by the waiting operation; must not move while
// waiting or held; may be reused. Released on destruction.
class RangeLock final : LockPlace, core::Timer, core::CancelHook {
public:
    RangeLock() : Timer(&on_time), CancelHook(&on_cancel) {}
    ~RangeLock() { release(); }
    RangeLock(const RangeLock&) = delete;
    RangeLock& operator=(const RangeLock&) = delete;

    bool held() const { return state_ == State::kHeld; }
    // Releases the lock, or ends the wait for it. Does nothing if there is neither.
    void release();

private:
    friend RangeLocks;
    enum class State : std::uint8_t { kFree, kWaiting, kHeld };

    static RangeLock& at(LockPlace& place) { return static_cast<RangeLock&>(place); }
    static void on_time(core::Timer& timer);
    static void on_cancel(core::CancelHook& hook);
    bool conflicts_with(const RangeLock& other) const;
    void give_up(Errc why);
    void leave_waits();
    void grant();

    RangeLocks* locks_ = nullptr;
    LockRequest request_{};
    State state_ = State::kFree;
    Errc why_not_ = Errc::kCancelled;
    std::coroutine_handle<> handle_;
    std::size_t blocker_count_ = 0;  // The earlier locks that this one conflicts with.
    // For a change begun under the lock: the object's state before it, and the change's number.
    std::optional<ObjectState> before_{};
    std::uint64_t change_number_ = 0;
};

// Shared and exclusive locks on block ranges of a disk's objects. First come, first served: a
// request waits for each earlier request that it conflicts with, held or waiting, so none starves;
// it passes all others. The holder of a lock on an object acquires no second lock on that object,
// so there are no deadlocks. There are at most two locks for each fom.
//
// Also keeps the durable state of objects with changes in progress: a writer of some blocks does
// not block readers of the others, and these must not see a size that may still be lost.
//
// Lives on one reactor.
class RangeLocks {
public:
    class Awaiter;

    explicit RangeLocks(core::Reactor& reactor) : reactor_(reactor) {}
    ~RangeLocks();
    RangeLocks(const RangeLocks&) = delete;
    RangeLocks& operator=(const RangeLocks&) = delete;

    // Result<void>: success, and the lock is held until released; kTimedOut, kCancelled. REQUIRES:
    // `lock` is free, and the range is not empty.
    Awaiter acquire(RangeLock& lock, const LockRequest& request, core::WaitOptions wait);

    // Registers a change of an object whose state was `before`, begun under an exclusive lock of
    // some blocks; until the lock is released, the change may be lost.
    void change_begun(RangeLock& lock, const ObjectState& before);
    // From now on the change may be shown although it may still be lost (a buffered write),
    // together with all changes begun before it.
    void change_shown(RangeLock& lock, const ObjectState& after);
    // The newest state of the object that replies may show. Empty: the current state in the map.
    std::optional<ObjectState> durable_state(store::Fid fid);

    // How many requests wait for a lock. No reply shows that a request waits.
    std::size_t waiting_count() const { return waiting_count_; }
    // How many locks were compared with another one since the start. It is the cost of requests and
    // releases, which no reply shows: each compares one lock with those of its bucket, once.
    std::uint64_t compared_count() const { return compared_count_; }

private:
    friend RangeLock;
    static constexpr std::size_t kBucketCount = 256;  // A power of two.
    using Bucket = core::IntrusiveList<LockPlace>;

    Bucket& bucket_of(store::Fid fid) {
        return buckets_[(fid.low ^ fid.low >> 40 ^ fid.high) % kBucketCount];
    }
    // Calls `visit` with each lock of the bucket, the oldest first.
    template <typename Visit>
    void for_each(store::Fid fid, Visit visit) {
        bucket_of(fid).for_each([&visit](LockPlace& place) { visit(RangeLock::at(place)); });
    }
    void enter(RangeLock& lock);
    void leave(RangeLock& lock);

    core::Reactor& reactor_;
    std::array<Bucket, kBucketCount> buckets_;  // Held and waiting, the oldest first.
    std::size_t waiting_count_ = 0;
    std::uint64_t changes_ = 0;
    std::uint64_t compared_count_ = 0;
};

// Used by co_await only.
class RangeLocks::Awaiter {
public:
    Awaiter(RangeLocks& locks, RangeLock& lock, const LockRequest& request, core::WaitOptions wait);

    bool await_ready();
    void await_suspend(std::coroutine_handle<> handle);
    [[nodiscard]] Result<void> await_resume() const;

private:
    RangeLocks& locks_;
    RangeLock& lock_;
    const core::WaitOptions wait_;
};

inline RangeLocks::Awaiter RangeLocks::acquire(RangeLock& lock, const LockRequest& request,
                                               core::WaitOptions wait) {
    return {*this, lock, request, wait};
}

}  // namespace fopd::objects
