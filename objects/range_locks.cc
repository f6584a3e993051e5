#include "objects/range_locks.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::objects {

// -- one lock --

bool RangeLock::conflicts_with(const RangeLock& other) const {
    if (request_.fid != other.request_.fid) return false;
    if (request_.mode == LockMode::kShared && other.request_.mode == LockMode::kShared) {
        return false;
    }
    return request_.range.first < other.request_.range.end() &&
           other.request_.range.first < request_.range.end();
}

void RangeLock::release() {
    if (state_ == State::kFree) return;
    if (state_ == State::kWaiting) {
        leave_waits();
        --locks_->waiting_count_;
    }
    state_ = State::kFree;
    before_.reset();
    locks_->leave(*this);
}

void RangeLock::leave_waits() {
    Timer::disarm();
    CancelHook::unlink();
}

void RangeLock::grant() {
    state_ = State::kHeld;
    leave_waits();
    --locks_->waiting_count_;
    locks_->reactor_.schedule(std::exchange(handle_, nullptr));
}

void RangeLock::give_up(Errc why) {
    why_not_ = why;
    release();
    locks_->reactor_.schedule(std::exchange(handle_, nullptr));
}

void RangeLock::on_time(core::Timer& timer) {
    static_cast<RangeLock&>(timer).give_up(Errc::kTimedOut);
}

void RangeLock::on_cancel(core::CancelHook& hook) {
    static_cast<RangeLock&>(hook).give_up(Errc::kCancelled);
}

// -- all of them --

RangeLocks::~RangeLocks() {
    for (Bucket& bucket : buckets_) ENSURE(bucket.empty());
}

void RangeLocks::enter(RangeLock& lock) {
    lock.blocker_count_ = 0;
    for_each(lock.request_.fid, [this, &lock](const RangeLock& earlier) {
        ++compared_count_;
        if (lock.conflicts_with(earlier)) ++lock.blocker_count_;
    });
    bucket_of(lock.request_.fid).push_back(lock);
}

// Grants the waiting locks that conflicted with no earlier lock but this one, the oldest first.
void RangeLocks::leave(RangeLock& lock) {
    if (waiting_count_ > 0) {
        bucket_of(lock.request_.fid).for_each_after(lock, [this, &lock](LockPlace& place) {
            RangeLock& later = RangeLock::at(place);
            ++compared_count_;
            if (later.conflicts_with(lock) && --later.blocker_count_ == 0) later.grant();
        });
    }
    lock.LockPlace::unlink();
}

void RangeLocks::change_begun(RangeLock& lock, const ObjectState& before) {
    ENSURE(lock.held());
    ENSURE(lock.request_.mode == LockMode::kExclusive);
    ENSURE(!lock.before_.has_value());
    lock.before_ = before;
    lock.change_number_ = ++changes_;
}

void RangeLocks::change_shown(RangeLock& lock, const ObjectState& after) {
    ENSURE(lock.before_.has_value());
    for_each(lock.request_.fid, [&](RangeLock& other) {
        if (other.request_.fid != lock.request_.fid || !other.before_) return;
        if (other.change_number_ <= lock.change_number_) other.before_ = after;
    });
}

std::optional<ObjectState> RangeLocks::durable_state(store::Fid fid) {
    const RangeLock* oldest = nullptr;
    for_each(fid, [&](RangeLock& lock) {
        if (lock.request_.fid != fid || !lock.before_) return;
        if (oldest == nullptr || lock.change_number_ < oldest->change_number_) oldest = &lock;
    });
    if (oldest == nullptr) return std::nullopt;
    return oldest->before_;
}

// -- the wait --

RangeLocks::Awaiter::Awaiter(RangeLocks& locks, RangeLock& lock, const LockRequest& request,
                             core::WaitOptions wait)
    : locks_(locks), lock_(lock), wait_(wait) {
    ENSURE(lock_.state_ == RangeLock::State::kFree);
    ENSURE(request.range.count > 0);
    lock_.locks_ = &locks;
    lock_.request_ = request;
}

bool RangeLocks::Awaiter::await_ready() {
    if (wait_.cancel != nullptr && wait_.cancel->cancelled()) {
        lock_.why_not_ = Errc::kCancelled;
        return true;
    }
    if (wait_.deadline <= locks_.reactor_.now()) {
        lock_.why_not_ = Errc::kTimedOut;
        return true;
    }
    locks_.enter(lock_);
    if (lock_.blocker_count_ > 0) return false;
    lock_.state_ = RangeLock::State::kHeld;
    return true;
}

void RangeLocks::Awaiter::await_suspend(std::coroutine_handle<> handle) {
    lock_.state_ = RangeLock::State::kWaiting;
    lock_.handle_ = handle;
    ++locks_.waiting_count_;
    if (wait_.deadline != kNever) locks_.reactor_.arm(lock_, wait_.deadline);
    if (wait_.cancel != nullptr) wait_.cancel->add(lock_);
}

Result<void> RangeLocks::Awaiter::await_resume() const {
    if (lock_.held()) return {};
    return std::unexpected(
        Error{.code = lock_.why_not_, .context = "other requests are using the object"});
}

}  // namespace fopd::objects
