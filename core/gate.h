#pragma once

#include <coroutine>
#include <cstdint>
#include <utility>

#include "core/ensure.h"
#include "core/result.h"
#include "core/timer_heap.h"

namespace fopd::core {

class Reactor;

// Counts the background tasks of one owner. The owner's stop() closes the gate, so that no new task
// can enter, and waits until the last task has left; then the owner may be destroyed. Used on one
// reactor only.
class Gate {
public:
    // Keeps its owner counted in the gate; the destructor leaves the gate.
    class Holder {
    public:
        Holder(Holder&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
        Holder(const Holder&) = delete;
        Holder& operator=(const Holder&) = delete;
        Holder& operator=(Holder&&) = delete;
        ~Holder() {
            if (gate_ != nullptr) gate_->leave();
        }

    private:
        friend Gate;
        explicit Holder(Gate* gate) : gate_(gate) {}
        Gate* gate_;
    };

    Gate() = default;
    ~Gate() { ENSURE(count_ == 0); }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    bool closed() const { return closed_; }
    std::uint64_t count() const { return count_; }

    // REQUIRES: not closed.
    Holder enter() {
        ENSURE(!closed_);
        ++count_;
        return Holder(this);
    }

    class CloseAwaiter : Timer {
    public:
        CloseAwaiter(Gate& gate, Reactor& reactor, Instant deadline)
            : Timer(&on_time), gate_(gate), reactor_(reactor), deadline_(deadline) {}
        ~CloseAwaiter() {
            if (gate_.closer_ == this) gate_.closer_ = nullptr;
        }
        CloseAwaiter(const CloseAwaiter&) = delete;
        CloseAwaiter& operator=(const CloseAwaiter&) = delete;
        bool await_ready() const { return gate_.count_ == 0; }
        void await_suspend(std::coroutine_handle<> handle);
        void await_resume() const noexcept {}

    protected:
        bool timed_out() const { return timed_out_; }

    private:
        friend Gate;
        static void on_time(Timer& timer);
        void finish();

        Gate& gate_;
        Reactor& reactor_;
        Instant deadline_;
        std::coroutine_handle<> handle_;
        bool timed_out_ = false;
    };

    class CloseByAwaiter final : public CloseAwaiter {
    public:
        using CloseAwaiter::CloseAwaiter;
        [[nodiscard]] Result<void> await_resume() const {
            if (!timed_out()) return {};
            return std::unexpected(Error{.code = Errc::kTimedOut, .context = "close gate"});
        }
    };

    // Closes the gate to new tasks without waiting.
    void shut() { closed_ = true; }

    // Shuts the gate and, when awaited by a coroutine of `reactor`, waits until all tasks have
    // left. Has no deadline: the tasks inside must end by their own deadlines or CancelSources.
    // Only one coroutine may wait at a time.
    CloseAwaiter close(Reactor& reactor) {
        closed_ = true;
        return {*this, reactor, kNever};
    }
    // Like close(), but gives kTimedOut if a task is still inside at `deadline`.
    CloseByAwaiter close_by(Reactor& reactor, Instant deadline) {
        closed_ = true;
        return {*this, reactor, deadline};
    }

private:
    void leave();

    std::uint64_t count_ = 0;
    bool closed_ = false;
    CloseAwaiter* closer_ = nullptr;
};

}  // namespace fopd::core
