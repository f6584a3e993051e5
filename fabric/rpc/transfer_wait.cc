#include "fabric/rpc/transfer_wait.h"

#include "fabric/session/session_host.h"

namespace fopd::fabric {

bool TransferWait::await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    if (wait_.cancel != nullptr && wait_.cancel->cancelled()) {
        result = std::unexpected(Error{.code = Errc::kCancelled, .context = "transfer"});
        return false;
    }
    session_->start(*this);
    if (done_early_) return false;
    suspended_ = true;
    if (wait_.deadline != kNever) session_->host().reactor().arm(*this, wait_.deadline);
    if (wait_.cancel != nullptr) wait_.cancel->add(*this);
    return true;
}

Result<void> TransferWait::await_resume() const {
    if (given_up_) return std::unexpected(Error{.code = *given_up_, .context = "transfer"});
    return result;
}

void TransferWait::on_done(Transfer& transfer) {
    auto& self = static_cast<TransferWait&>(transfer);
    self.disarm();
    static_cast<core::CancelHook&>(self).unlink();
    self.done_early_ = true;
    if (self.suspended_) self.session_->host().reactor().schedule(self.handle_);
}

void TransferWait::on_time(core::Timer& timer) {
    auto& self = static_cast<TransferWait&>(timer);
    static_cast<core::CancelHook&>(self).unlink();
    self.give_up(Errc::kTimedOut);
}

void TransferWait::on_cancel(core::CancelHook& hook) {
    auto& self = static_cast<TransferWait&>(hook);
    self.disarm();
    self.give_up(Errc::kCancelled);
}

void TransferWait::give_up(Errc why) {
    if (given_up_) {
        session_->end(Errc::kTimedOut, "a transfer that was given up does not end");
        return;
    }
    given_up_ = why;
    if (session_->give_up(*this)) return;
    session_->host().reactor().arm(*this, after(session_->host().reactor().now(), kLetGoMax));
}

}  // namespace fopd::fabric
