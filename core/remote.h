#pragma once

#include <coroutine>
#include <optional>
#include <type_traits>

#include "core/reactor.h"

namespace fopd::core {

// Runs `job()` on the reactor `there` and continues on `here` with what it returned:
//     auto job = [&node] { return node.count(); };
//     const auto count = co_await run_on(here, there, job);
// Allocates nothing. It has no deadline: `there` turns as long as the process lives, and the job is
// short and does not wait. `job` is named by the caller and lives until then.
template <typename Job>
class RemoteCall final : Message {
public:
    using Value = std::invoke_result_t<Job&>;

    RemoteCall(Reactor& here, Reactor& there, Job& job)
        : Message(&deliver), here_(here), there_(there), job_(job) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        there_.post(*this);
    }
    Value await_resume() {
        if constexpr (!std::is_void_v<Value>) return std::move(*value_);
    }

private:
    struct Nothing {};
    using Stored = std::conditional_t<std::is_void_v<Value>, Nothing, Value>;

    // Comes by twice: on the way there, and on the way back.
    static void deliver(Message& message) {
        auto& self = static_cast<RemoteCall&>(message);
        if (self.value_.has_value()) {
            self.here_.schedule(self.handle_);
            return;
        }
        if constexpr (std::is_void_v<Value>) {
            self.job_();
            self.value_.emplace();
        } else {
            self.value_.emplace(self.job_());
        }
        self.here_.post(self);
    }

    Reactor& here_;
    Reactor& there_;
    Job& job_;
    std::coroutine_handle<> handle_;
    std::optional<Stored> value_;
};

template <typename Job>
RemoteCall<Job> run_on(Reactor& here, Reactor& there, Job& job) {
    return {here, there, job};
}

template <typename T>
struct TaskValue;
template <typename T>
struct TaskValue<Task<T>> {
    using Type = T;
};

// Runs the task that `make()` returns on the reactor `there`, inside a gate of that reactor, and
// continues on `here` with its result:
//     auto make = [locality] { return locality->count_slowly(); };
//     const auto count = co_await run_task_on(here, there, gate, make);
// It lasts as long as the task does; `make` is named by the caller and lives until then. The gate
// is open when the call gets there.
template <typename Make>
class RemoteTask final : Message {
public:
    using Value = typename TaskValue<std::invoke_result_t<Make&>>::Type;

    RemoteTask(Reactor& here, Reactor& there, Gate& gate, Make& make)
        : Message(&deliver), here_(here), there_(there), gate_(gate), make_(make) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        there_.post(*this);
    }
    Value await_resume() { return std::move(*value_); }

private:
    static void deliver(Message& message) {
        auto& self = static_cast<RemoteTask&>(message);
        if (self.value_.has_value()) {
            self.here_.schedule(self.handle_);
        } else {
            self.there_.spawn(self.gate_, run(&self));
        }
    }
    static Task<void> run(RemoteTask* self) {
        Value value = co_await self->make_();
        self->value_.emplace(std::move(value));
        self->here_.post(*self);
    }

    Reactor& here_;
    Reactor& there_;
    Gate& gate_;
    Make& make_;
    std::coroutine_handle<> handle_;
    std::optional<Value> value_;
};

template <typename Make>
RemoteTask<Make> run_task_on(Reactor& here, Reactor& there, Gate& gate, Make& make) {
    return {here, there, gate, make};
}

}  // namespace fopd::core
