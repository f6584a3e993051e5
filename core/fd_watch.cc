#include "core/fd_watch.h"

namespace fopd::core {

void FdWatch::arm() {
    if (fired_ || stopped_ || poll_.in_flight) return;
    poll_.code = IoCode::kPoll;
    poll_.file = File{.fd = fd_};
    poll_.poll_events = events_;
    reactor_.submit(poll_);
}

Task<FdWatch::Wake> FdWatch::wait(Duration cap, CancelSource* cancel) {
    arm();
    const WaitOptions options{.deadline = after(reactor_.now(), cap), .cancel = cancel};
    while (!fired_) {
        if (stopped_) co_return Wake::kCancelled;
        const auto woken = co_await waiters_.wait(options);
        if (!woken && !fired_) {
            co_return woken.error().code == Errc::kTimedOut ? Wake::kCap : Wake::kCancelled;
        }
    }
    fired_ = false;
    co_return Wake::kReady;
}

Task<void> FdWatch::stop() {
    stopped_ = true;
    waiters_.wake_all();
    if (poll_.in_flight) reactor_.cancel(poll_);
    while (poll_.in_flight) {
        // No deadline: the kernel completes a cancelled poll at once.
        [[maybe_unused]] const auto ended = co_await waiters_.wait({});
    }
}

void FdWatch::on_complete(IoOp& op) {
    FdWatch& watch = static_cast<Poll&>(op).watch;
    watch.fired_ = op.result >= 0;
    watch.waiters_.wake_all();
}

}  // namespace fopd::core
