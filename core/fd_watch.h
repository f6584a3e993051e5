#pragma once

#include "core/reactor.h"
#include "core/wait_queue.h"

namespace fopd::core {

// Waits for a descriptor that belongs to somebody else's library. One poll is in the kernel at a
// time, armed anew only after it fired, because a poll that stays armed loses wake-ups with such
// descriptors. Even so one may be lost: every wait ends after `cap` at the latest, and the owner
// then looks whether there is something to do, and says so with missed_wake() if there was. The
// same holds for a descriptor that cannot be polled: no wait ends before its cap.
class FdWatch {
public:
    enum class Wake : std::uint8_t { kReady, kCap, kCancelled };

    // The descriptor stays open until stop() has been awaited.
    FdWatch(Reactor& reactor, int fd, std::uint32_t events)
        : reactor_(reactor), fd_(fd), events_(events) {}
    ~FdWatch() { ENSURE(!poll_.in_flight); }
    FdWatch(const FdWatch&) = delete;
    FdWatch& operator=(const FdWatch&) = delete;

    // Until the descriptor is ready, `cap` has passed, or `cancel` or stop(). One coroutine waits
    // at a time. Whatever the library needs to hear before its descriptor may be trusted comes
    // first.
    Task<Wake> wait(Duration cap, CancelSource* cancel = nullptr);

    // For a poller, which sleeps with its reactor: has the kernel watch the descriptor until it is
    // ready once. Idempotent.
    void arm();
    // Whether the descriptor was ready since it was armed; asked once for each time it was.
    bool take_fired() { return std::exchange(fired_, false); }

    // Takes the poll back from the kernel, for good: every wait is then cancelled.
    Task<void> stop();

    // The cap ended a wait, and there was something to do.
    void missed_wake() { reactor_.stats().missed_wakes.add(1); }

private:
    struct Poll final : IoOp {
        explicit Poll(FdWatch& owner) : IoOp(&on_complete), watch(owner) {}
        FdWatch& watch;
    };
    static void on_complete(IoOp& op);

    Reactor& reactor_;
    const int fd_;
    const std::uint32_t events_;
    Poll poll_{*this};
    WaitQueue waiters_{reactor_};
    bool fired_ = false;  // The descriptor was ready and nobody has been told yet.
    bool stopped_ = false;
};

}  // namespace fopd::core
