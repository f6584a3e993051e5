#pragma once

#include <coroutine>

#include "core/intrusive_list.h"
#include "core/reactor.h"

namespace fopd::core {

// Coroutines of one reactor that wait for a condition, oldest first. Like a condition variable it
// has no state of its own: check the condition again after the wait.
class WaitQueue {
public:
    class Waiter;

    explicit WaitQueue(Reactor& reactor) : reactor_(reactor) {}
    ~WaitQueue() { ENSURE(waiters_.empty()); }
    WaitQueue(const WaitQueue&) = delete;
    WaitQueue& operator=(const WaitQueue&) = delete;

    // Gives a Result<void>: success when woken, otherwise kTimedOut or kCancelled.
    Waiter wait(WaitOptions options);

    bool empty() const { return waiters_.empty(); }
    // Wakes the oldest waiter, which runs in a later turn. False if there is none.
    bool wake_one();
    void wake_all() {
        while (wake_one()) {
        }
    }

private:
    // A waiter is in two lists at a time, this one and its CancelSource's; the node types
    // distinguish them.
    class Place : public ListNode {};

    Reactor& reactor_;
    IntrusiveList<Place> waiters_;
};

class WaitQueue::Waiter final : Place, Timer, CancelHook {
public:
    Waiter(WaitQueue& queue, WaitOptions options)
        : Timer(&on_time), CancelHook(&on_cancel), queue_(queue), options_(options) {}

    bool await_ready();
    void await_suspend(std::coroutine_handle<> handle);
    [[nodiscard]] Result<void> await_resume() const;

private:
    friend WaitQueue;
    enum class End : std::uint8_t { kWoken, kTimedOut, kCancelled };

    void finish(End end);
    static void on_time(Timer& timer) { static_cast<Waiter&>(timer).finish(End::kTimedOut); }
    static void on_cancel(CancelHook& hook) { static_cast<Waiter&>(hook).finish(End::kCancelled); }

    WaitQueue& queue_;
    WaitOptions options_;
    std::coroutine_handle<> handle_;
    End end_ = End::kWoken;
};

inline WaitQueue::Waiter WaitQueue::wait(WaitOptions options) {
    return {*this, options};
}

}  // namespace fopd::core
