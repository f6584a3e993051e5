#pragma once

#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/ensure.h"
#include "core/frame_cache.h"

namespace fopd {

template <typename T = void>
class Task;

namespace detail {

// Common part of every Task's promise: the coroutine to resume when the task ends.
class TaskPromiseBase : public core::CachedFrame {
public:
    // Resumes the awaiting coroutine if it has suspended. If the task ends synchronously, inside
    // Awaiter::await_suspend(), no continuation is set yet: await_suspend() then returns false and
    // the parent goes on. So the stack does not grow, however many tasks end synchronously in a
    // row.
    struct FinalAwaiter {
        bool await_ready() const noexcept { return false; }
        template <typename Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
            const std::coroutine_handle<> next = done.promise().continuation_;
            return next ? next : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };

    std::suspend_always initial_suspend() const noexcept { return {}; }
    FinalAwaiter final_suspend() const noexcept { return {}; }

    // The I/O path does not use exceptions. If an exception escapes a task anyway, it propagates
    // out of the reactor's loop: it fails the test that runs the loop, and terminates a daemon,
    // whose thread functions are noexcept.
    [[noreturn]] void unhandled_exception() { throw; }

    void continue_with(std::coroutine_handle<> continuation) { continuation_ = continuation; }

private:
    std::coroutine_handle<> continuation_;
};

template <typename T>
class TaskPromise final : public TaskPromiseBase {
public:
    Task<T> get_return_object();
    template <typename U = T>
        requires std::is_constructible_v<T, U&&>
    void return_value(U&& value) {
        value_.emplace(std::forward<U>(value));
    }
    T take() {
        ENSURE(value_.has_value());
        return std::move(*value_);
    }

private:
    std::optional<T> value_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
public:
    Task<void> get_return_object();
    void return_void() const noexcept {}
    void take() const noexcept {}
};

}  // namespace detail

// A lazy coroutine: it starts when it is awaited, stays on the reactor it started on, and may be
// awaited at most once. The Task object owns the coroutine frame. Destroying a Task before it has
// ended also destroys the operation it is suspended in; only a reactor that is being torn down does
// this.
template <typename T>
class [[nodiscard]] Task {
public:
    using promise_type = detail::TaskPromise<T>;

    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    Task& operator=(Task&&) = delete;
    ~Task() {
        if (handle_) handle_.destroy();
    }

    class Awaiter {
    public:
        explicit Awaiter(std::coroutine_handle<promise_type> child) : child_(child) {}
        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> parent) const {
            child_.resume();
            if (child_.done()) return false;
            child_.promise().continue_with(parent);
            return true;
        }
        T await_resume() const { return child_.promise().take(); }

    private:
        std::coroutine_handle<promise_type> child_;
    };

    Awaiter operator co_await() && {
        ENSURE(handle_ && !handle_.done());
        return Awaiter(handle_);
    }

private:
    friend promise_type;
    explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

    std::coroutine_handle<promise_type> handle_;
};

template <typename T>
Task<T> detail::TaskPromise<T>::get_return_object() {
    return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

inline Task<void> detail::TaskPromise<void>::get_return_object() {
    return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

}  // namespace fopd
