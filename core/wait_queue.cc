#include "core/wait_queue.h"

namespace fopd::core {

bool WaitQueue::wake_one() {
    Place* const oldest = waiters_.pop_front();
    if (oldest == nullptr) return false;
    static_cast<Waiter*>(oldest)->finish(Waiter::End::kWoken);
    return true;
}

bool WaitQueue::Waiter::await_ready() {
    if (options_.cancel != nullptr && options_.cancel->cancelled()) {
        end_ = End::kCancelled;
        return true;
    }
    if (options_.deadline <= queue_.reactor_.now()) {
        end_ = End::kTimedOut;
        return true;
    }
    return false;
}

void WaitQueue::Waiter::await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    queue_.waiters_.push_back(*this);
    if (options_.deadline != kNever) queue_.reactor_.arm(*this, options_.deadline);
    if (options_.cancel != nullptr) options_.cancel->add(*this);
}

Result<void> WaitQueue::Waiter::await_resume() const {
    switch (end_) {
        case End::kWoken: return {};
        case End::kTimedOut:
            return std::unexpected(Error{.code = Errc::kTimedOut, .context = "wait"});
        case End::kCancelled: break;
    }
    return std::unexpected(Error{.code = Errc::kCancelled, .context = "wait"});
}

void WaitQueue::Waiter::finish(End end) {
    end_ = end;
    disarm();
    Place::unlink();
    CancelHook::unlink();
    queue_.reactor_.schedule(handle_);
}

}  // namespace fopd::core
