#pragma once

#include "core/reactor.h"
#include "core/wait_queue.h"

namespace fopd::core {

// Waits for a descriptor that is owned by another library. At most one poll is in the kernel at a
// time, and it is issued again only after it has fired, because a poll that stays armed loses
// wake-ups with such descriptors. A wake-up may still be lost: every wait ends after `cap` at the
// latest; the owner then checks whether there is work, and reports it with missed_wake() if so. If
// the descriptor cannot be polled, every wait lasts until its cap.
class FdWatch {
public:
    enum class Wake : std::uint8_t { kReady, kCap, kCancelled };

    // The descriptor stays open until stop() has been awaited.
    FdWatch(Reactor& reactor, int fd, std::uint32_t events)
        : reactor_(reactor), fd_(fd), events_(events) {}
    ~FdWatch() { ENSURE(!poll_.in_flight); }
    FdWatch(const FdWatch&) = delete;
    FdWatch& operator=(const FdWatch&) = delete;

    // Waits until the descriptor is ready, `cap` has passed, `cancel` is cancelled, or stop() is
    // called. Only one coroutine may wait at a time. Any call that the library requires before its
    // descriptor becomes ready must be made first.
    Task<Wake> wait(Duration cap, CancelSource* cancel = nullptr);

    // For a poller, which sleeps together with its reactor: lets the kernel watch the descriptor
    // until it is ready once. Idempotent.
    void arm();
    // Whether the descriptor became ready since it was armed; resets this flag.
    bool take_fired() { return std::exchange(fired_, false); }

    // Cancels the poll permanently; every wait then ends as cancelled.
    Task<void> stop();

    // Counts a wait that was ended by its cap although there was work.
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
    bool fired_ = false;  // The descriptor became ready, and take_fired() or a wait has not
                          // consumed that yet.
    bool stopped_ = false;
};

}  // namespace fopd::core
