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

// Runs the task that `job()` makes on another reactor, inside a gate there, and continues here with
// what it returned; empty when the gate there is closed.
//     auto job = [operation] { return operation->run(); };
//     const auto reply = co_await run_task_on<fop::Reply>(here, there, gate, job);
// It has no deadline: the task has its own. `job` is named by the caller and lives until then; it
// is called there, and what it hands the task stays too.
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

// Cancels a source on another reactor when one here is cancelled. Ended before it is destroyed.
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

    // Nothing comes there any more afterwards.
    Task<void> end() {
        CancelHook::unlink();
        if (!posted_) co_return;
        // What was posted before has been delivered then.
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
