#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "core/reactor.h"

namespace fopd::core {

class VirtualWorld;

// A thread pool for blocking calls, so that they never block a locality: a few named threads with a
// bounded queue. In the simulation a call runs at once and returns after a delay drawn from the
// seed.
class Offload {
public:
    // One call, queued or running. The owner keeps it until `done` has been delivered on `home`.
    struct Job {
        using Run = void (*)(Job&);
        Job(Run run_blocking, Message::Deliver deliver, Timer::Fire fire, Reactor& reactor)
            : run(run_blocking), done(*this, deliver), delay(*this, fire), home(reactor) {}

        struct Done final : Message {
            Done(Job& owner, Deliver deliver) : Message(deliver), job(owner) {}
            Job& job;
        };
        struct Delay final : Timer {
            Delay(Job& owner, Fire fire) : Timer(fire), job(owner) {}
            Job& job;
        };

        Run run;
        Done done;
        Delay delay;  // For the simulated world.
        Reactor& home;
        Job* next = nullptr;
    };

    template <typename Call>
    class Awaiter;

    virtual ~Offload() = default;

    // Grows the pool to at least `thread_count` threads. Called by its owner.
    virtual Result<void> grow(unsigned thread_count) = 0;

    // Returns false if the queue is full. Called on the thread of job.home.
    virtual bool submit(Job& job) = 0;

    // Runs `call()` on a thread of the pool, and continues on `home` with a Result of its value;
    // kNoSpace if the queue is full. A blocking call cannot be cancelled and has no deadline except
    // its own. The caller keeps `call` alive until the await returns.
    template <typename Call>
    Awaiter<Call> run(Reactor& home, Call& call) {
        return {*this, home, call};
    }
};

template <typename Call>
class Offload::Awaiter final : Offload::Job {
public:
    using Value = std::invoke_result_t<Call&>;

    Awaiter(Offload& offload, Reactor& home_reactor, Call& call)
        : Job(&run_call, &deliver, &fire, home_reactor), offload_(offload), call_(call) {}

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        accepted_ = true;  // Set before the other thread can see the job.
        if (!offload_.submit(*this)) accepted_ = false;
        return accepted_;
    }
    [[nodiscard]] Result<Value> await_resume() {
        if (!accepted_) {
            return std::unexpected(Error{.code = Errc::kNoSpace, .context = "offload queue"});
        }
        if constexpr (std::is_void_v<Value>) {
            return {};
        } else {
            return std::move(*value_);
        }
    }

private:
    struct Nothing {};
    using Stored = std::conditional_t<std::is_void_v<Value>, Nothing, Value>;

    static void run_call(Job& job) {
        auto& self = static_cast<Awaiter&>(job);
        if constexpr (std::is_void_v<Value>) {
            self.call_();
        } else {
            self.value_.emplace(self.call_());
        }
    }
    static void deliver(Message& message) { resume(static_cast<Done&>(message).job); }
    static void fire(Timer& timer) { resume(static_cast<Delay&>(timer).job); }
    static void resume(Job& job) {
        auto& self = static_cast<Awaiter&>(job);
        self.home.schedule(self.handle_);
    }

    Offload& offload_;
    Call& call_;
    std::coroutine_handle<> handle_;
    std::optional<Stored> value_;
    bool accepted_ = false;
};

struct OffloadOptions {
    std::string name = "offload";  // The threads' name in top and gdb: at most 15 characters.
    unsigned thread_count = 1;
    std::size_t queue_max = 256;
};

// Creates real threads, or fails if they cannot be created. The destructor waits for running calls;
// no call may be queued then. The reactors of all calls must outlive it: a thread may still be
// inside post() to a reactor that has already received the result.
Result<std::unique_ptr<Offload>> make_thread_offload(OffloadOptions options);

// For the simulated world.
std::unique_ptr<Offload> make_virtual_offload(VirtualWorld& world, OffloadOptions options);

}  // namespace fopd::core
