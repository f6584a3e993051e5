#pragma once

#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/reactor.h"
#include "core/round_trip.h"

namespace fopd::core {

// Runs `job()` on the reactor `there` and continues on `here` with what it returned:
//     auto job = [&node] { return node.count(); };
//     const auto count = co_await run_on(here, there, job);
// Allocates nothing. Has no deadline: `there` runs as long as the process lives, and the job must
// be short and must not block. The caller keeps `job` alive until the await returns.
template <typename Job>
class RemoteCall final : RoundTrip {
public:
    using Value = std::invoke_result_t<Job&>;

    RemoteCall(Reactor& here, Reactor& there, Job& job) : RoundTrip(here, there), job_(job) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        depart();
    }
    Value await_resume() {
        if constexpr (!std::is_void_v<Value>) return std::move(*value_);
    }

private:
    struct Nothing {};
    using Stored = std::conditional_t<std::is_void_v<Value>, Nothing, Value>;

    void arrive() override {
        if constexpr (std::is_void_v<Value>) {
            job_();
        } else {
            value_.emplace(job_());
        }
        go_back();
    }
    void come_back() override { here().schedule(handle_); }

    Job& job_;
    std::coroutine_handle<> handle_;
    std::optional<Stored> value_;
};

template <typename Job>
RemoteCall<Job> run_on(Reactor& here, Reactor& there, Job& job) {
    return {here, there, job};
}

}  // namespace fopd::core
