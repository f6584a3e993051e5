#pragma once

#include <coroutine>
#include <cstdint>
#include <utility>

#include "core/ensure.h"
#include "core/result.h"
#include "core/timer_heap.h"

namespace fopd::core {

class Reactor;

// Counts what runs in the background of one owner. The owner's stop() closes the gate, which lets
// nobody in any more, and waits until the last has left; then the owner may be destroyed. Lives on
// one reactor.
class Gate {
public:
    // A place inside the gate, left on destruction.
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

    // Requires: not closed.
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

    // Lets nobody in any more.
    void shut() { closed_ = true; }

    // Shuts the gate; a coroutine of `reactor` awaits it to wait until all have left. It has no
    // deadline: those inside end because they are told to, each by its own deadline or
    // CancelSource. One coroutine waits at a time.
    CloseAwaiter close(Reactor& reactor) {
        closed_ = true;
        return {*this, reactor, kNever};
    }
    // The same until `deadline` at most: kTimedOut when somebody is still inside by then.
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
