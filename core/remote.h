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

}  // namespace fopd::core
