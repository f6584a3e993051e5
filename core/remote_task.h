#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "core/cancel.h"
#include "core/gate.h"
#include "core/mailbox.h"
#include "core/reactor.h"
#include "core/remote.h"
#include "core/round_trip.h"
#include "core/task.h"

namespace fopd::core {

// Runs the task that `job()` returns on the reactor `there`, inside `gate` of that reactor, and
// continues on `here` with the task's value. Gives an empty optional when the gate is closed.
//     auto job = [operation] { return operation->run(); };
//     const auto reply = co_await run_task_on<fop::Reply>(here, there, gate, job);
// Has no deadline of its own: the task must have one. `job` is called on `there`. The caller keeps
// `job`, and everything it passes to the task, alive until the await returns.
template <typename Value, typename Job>
class RemoteTask final : RoundTrip {
public:
    RemoteTask(Reactor& here, Reactor& there, Gate& gate, Job& job)
        : RoundTrip(here, there), gate_(gate), job_(job) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        depart();
    }
    std::optional<Value> await_resume() { return std::move(value_); }

private:
    void arrive() override {
        if (gate_.closed()) {
            go_back();
        } else {
            there().spawn(gate_, drive(this));
        }
    }
    void come_back() override { here().schedule(handle_); }

    static Task<void> drive(RemoteTask* self) {
        auto value = co_await self->job_();
        self->value_.emplace(std::move(value));
        self->go_back();
    }

    Gate& gate_;
    Job& job_;
    std::coroutine_handle<> handle_;
    std::optional<Value> value_;
};

template <typename Value, typename Job>
RemoteTask<Value, Job> run_task_on(Reactor& here, Reactor& there, Gate& gate, Job& job) {
    return {here, there, gate, job};
}

// Cancels `source_there` on another reactor when `source` on this one is cancelled. The owner must
// await end() before destroying it.
class CancelThere final : Message, CancelHook {
public:
    CancelThere(CancelSource& source, Reactor& here, Reactor& there, CancelSource& source_there)
        : Message(&deliver),
          CancelHook(&on_cancel),
          here_(here),
          there_(there),
          source_there_(source_there) {
        if (source.cancelled()) {
            source_there_.cancel();
        } else {
            source.add(*this);
        }
    }

    // After this returns, `source_there` is no longer used.
    Task<void> end() {
        CancelHook::unlink();
        if (!posted_) co_return;
        // Messages arrive in order, so after this round trip the earlier one has been delivered.
        auto nothing = [] {};
        co_await run_on(here_, there_, nothing);
    }

private:
    static void on_cancel(CancelHook& hook) {
        auto& self = static_cast<CancelThere&>(hook);
        self.posted_ = true;
        self.there_.post(self);
    }
    static void deliver(Message& message) {
        static_cast<CancelThere&>(message).source_there_.cancel();
    }

    Reactor& here_;
    Reactor& there_;
    CancelSource& source_there_;
    bool posted_ = false;
};

}  // namespace fopd::core
