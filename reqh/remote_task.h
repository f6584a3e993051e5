#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "core/cancel.h"
#include "core/gate.h"
#include "core/mailbox.h"
#include "core/reactor.h"
#include "core/remote.h"
#include "core/task.h"

namespace fopd::reqh {

// Runs the task that `job()` makes on another reactor, inside a gate there, and continues here with
// what it returned; empty when the gate there is closed.
//     auto job = [operation] { return operation->run(); };
//     const auto reply = co_await run_task_on<fop::Reply>(here, there, gate, job);
// It has no deadline: the task has its own. `job` is named by the caller and lives until then; it
// is called there, and what it hands the task stays too.
template <typename Value, typename Job>
class RemoteTask final : core::Message {
public:
    RemoteTask(core::Reactor& here, core::Reactor& there, core::Gate& gate, Job& job)
        : Message(&deliver), here_(here), there_(there), gate_(gate), job_(job) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        there_.post(*this);
    }
    std::optional<Value> await_resume() { return std::move(value_); }

private:
    // Comes by twice: on the way there, and on the way back.
    static void deliver(core::Message& message) {
        auto& self = static_cast<RemoteTask&>(message);
        if (self.began_) {
            self.here_.schedule(self.handle_);
            return;
        }
        self.began_ = true;
        if (self.gate_.closed()) {
            self.here_.post(self);
        } else {
            self.there_.spawn(self.gate_, drive(&self));
        }
    }

    static Task<void> drive(RemoteTask* self) {
        auto value = co_await self->job_();
        self->value_.emplace(std::move(value));
        self->here_.post(*self);
    }

    core::Reactor& here_;
    core::Reactor& there_;
    core::Gate& gate_;
    Job& job_;
    std::coroutine_handle<> handle_;
    bool began_ = false;
    std::optional<Value> value_;
};

template <typename Value, typename Job>
RemoteTask<Value, Job> run_task_on(core::Reactor& here, core::Reactor& there, core::Gate& gate,
                                   Job& job) {
    return {here, there, gate, job};
}

// Cancels a source on another reactor when one here is cancelled. Ended before it is destroyed.
class CancelThere final : core::Message, core::CancelHook {
public:
    CancelThere(core::CancelSource& source, core::Reactor& here, core::Reactor& there,
                core::CancelSource& source_there)
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
        co_await core::run_on(here_, there_, nothing);
    }

private:
    static void on_cancel(core::CancelHook& hook) {
        auto& self = static_cast<CancelThere&>(hook);
        self.posted_ = true;
        self.there_.post(self);
    }
    static void deliver(core::Message& message) {
        static_cast<CancelThere&>(message).source_there_.cancel();
    }

    core::Reactor& here_;
    core::Reactor& there_;
    core::CancelSource& source_there_;
    bool posted_ = false;
};

}  // namespace fopd::reqh
