#pragma once

#include <coroutine>

#include "core/reactor.h"
#include "fabric/session/session.h"

namespace fopd::fabric {

// co_await TransferWait(...): waits for one part of a transfer. After a timeout or cancellation the
// transfer is given up, which ends the wait. Where the transport cannot give it up, it uses the
// memory until it completes, so the wait goes on for up to kLetGoMax; then the session is ended,
// which gives the memory back.
class TransferWait final : Transfer, core::Timer, core::CancelHook {
public:
    struct What {
        Direction direction = Direction::kPull;
        LocalMemory local;
        RemoteMemory remote;
    };
    TransferWait(Session* session, const What& what, core::WaitOptions wait)
        : Transfer(&on_done),
          Timer(&on_time),
          CancelHook(&on_cancel),
          session_(session),
          wait_(wait) {
        direction = what.direction;
        local = what.local;
        remote = what.remote;
    }

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> handle);
    [[nodiscard]] Result<void> await_resume() const;

private:
    static constexpr Duration kLetGoMax = 2s;

    static void on_done(Transfer& transfer);
    static void on_time(core::Timer& timer);
    static void on_cancel(core::CancelHook& hook);
    void give_up(Errc why);

    Session* session_;
    core::WaitOptions wait_;
    std::coroutine_handle<> handle_;
    std::optional<Errc> given_up_;
    bool done_early_ = false;
    bool suspended_ = false;
};

}  // namespace fopd::fabric
