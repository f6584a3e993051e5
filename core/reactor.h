#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <sys/uio.h>

#include "core/backend.h"
#include "core/cancel.h"
#include "core/counter.h"
#include "core/gate.h"
#include "core/intrusive_list.h"
#include "core/mailbox.h"
#include "core/poller.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "core/timer_heap.h"

namespace fopd::core {

// Limits of one wait: its deadline, and a source that can cancel it early (null: none).
struct WaitOptions {
    Instant deadline = kNever;
    CancelSource* cancel = nullptr;
};

// Counters of a reactor's work. The reactor's thread writes them; any thread may read them.
struct ReactorStats {
    Counter turns;
    Counter sleeps;
    Counter resumed;  // Coroutines taken from the ready queue.
    Counter timers_fired;
    Counter messages;
    Counter io_submitted;
    Counter io_completed;
    Counter spins_won;     // Spins that found work.
    Counter spins_lost;    // Spins that found nothing, so the reactor slept.
    Counter last_turn_ns;  // When the last turn began, on the reactor's time line.
    Counter missed_wakes;  // See FdWatch::missed_wake().
};

struct ReactorOptions {
    // How long the reactor looks for work before it sleeps; see Poller::Look. 0 disables spinning.
    // Enable it only when a core can be spared.
    Duration spin{0};
};

class SleepAwaiter;
class PlainIoAwaiter;
class IoAwaiter;
class YieldAwaiter;
class LongStepAwaiter;

// One thread's event loop: ready coroutines, timers, messages from other threads, and I/O. One turn
// delivers messages, fires timers, polls the pollers, resumes the coroutines that are ready at that
// point, and flushes the pollers. If no work is left, the reactor then spins, if that is worth it,
// and waits for I/O. now() changes only between turns, at a wait or during a spin, so it is
// constant within a turn. A spin that polls the pollers does so for the turn that follows.
//
// Only post() and stats() may be called from any thread. Every other function must be called on the
// thread that calls run() or turn().
class Reactor {
public:
    explicit Reactor(std::unique_ptr<Backend> backend, ReactorOptions options = {});
    // Destroys the coroutines that are still suspended on this reactor. REQUIRES: no operation is
    // in flight whose buffer a kernel could still write to. Outside the simulation, all gates were
    // closed before, so no coroutine is left.
    ~Reactor();
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    // -- coroutines --

    // Runs `task` in the background, from the next turn on. The task holds the gate until it ends.
    // REQUIRES: the gate is open.
    void spawn(Gate& gate, Task<void> task);
    // Like spawn(), but runs the task at once, within this call, until it first suspends. Pollers
    // use this in end_of_turn(), so that the task's I/O is submitted in the same turn.
    void start(Gate& gate, Task<void> task);
    // Resumes a suspended coroutine in a later turn. Coroutines resume in the order of schedule()
    // calls.
    void schedule(std::coroutine_handle<> handle);
    // Destroys every spawned coroutine at its suspension point, the last spawned first, so that
    // objects a coroutine lent to its children outlive the children. The simulation uses this to
    // end a process: it then destroys the objects that had spawned the coroutines, then the
    // reactor.
    void drop_coroutines();
    // Suspends the caller only if this turn's budget of maybe_yield() calls is used up. For loops
    // that might otherwise run long without suspending.
    YieldAwaiter maybe_yield();
    // Suspends the caller behind every coroutine that is ready now.
    YieldAwaiter yield();
    // Await this before a long step of computation, such as examining some hundred entries. Each
    // turn lets only one of the waiting coroutines continue, in the order of these calls, so short
    // work is delayed by at most one long step per turn.
    LongStepAwaiter long_step();

    // -- time --

    Instant now() const { return now_; }
    // Gives a Result<void>: success at the deadline, kCancelled if cancelled earlier.
    SleepAwaiter sleep_until(Instant deadline, CancelSource* cancel = nullptr);
    SleepAwaiter sleep_for(Duration span, CancelSource* cancel = nullptr);
    void arm(Timer& timer, Instant deadline) { timers_.arm(timer, deadline); }

    // -- other threads --

    // Thread-safe. Delivers `message` on this reactor's thread. REQUIRES: the reactor outlives the
    // call, so it is destroyed only after the threads that post to it have ended.
    void post(Message& message);

    // -- pollers: libraries that must be polled for events --

    // Calls `poller` in every turn from now on. The poller must be removed before it is destroyed;
    // its destructor also removes it.
    void add_poller(Poller& poller) { pollers_.push_back(poller); }
    void remove_poller(Poller& poller) { poller.unlink(); }

    // -- I/O. A short read or write is not an error: the result is the number of bytes. An
    // operation that times out or is cancelled still waits until the kernel has released the
    // buffer. --

    PlainIoAwaiter nop();  // What an operation costs without its work.
    PlainIoAwaiter read(File file, Buffer into, std::uint64_t offset);
    IoAwaiter read(File file, Buffer into, std::uint64_t offset, WaitOptions wait);
    PlainIoAwaiter write(File file, Buffer from, std::uint64_t offset);
    IoAwaiter write(File file, Buffer from, std::uint64_t offset, WaitOptions wait);
    // Writes all `parts` consecutively, starting at `offset`. The caller keeps the iovecs and the
    // memory they name until the write has completed.
    PlainIoAwaiter gather(File file, std::span<const iovec> parts, std::uint64_t offset);
    // Like fdatasync(2): makes written data durable, and only the metadata needed to read it back.
    PlainIoAwaiter sync_data(File file);
    IoAwaiter sync_data(File file, WaitOptions wait);
    PlainIoAwaiter sync(File file);
    IoAwaiter sync(File file, WaitOptions wait);
    // Waits until the descriptor has one of the poll(2) `events`. One-shot: the poll must be issued
    // again for the next event.
    IoAwaiter poll(int fd, std::uint32_t events, WaitOptions wait = {});

    void submit(IoOp& op);
    void cancel(IoOp& op) { backend_->cancel(op); }
    Result<File> attach(int fd) { return backend_->attach(fd); }
    void detach(const File& file) { backend_->detach(file); }
    Result<Buffer> attach_region(std::span<std::byte> memory) {
        return backend_->attach_region(memory);
    }
    void detach_region(const Buffer& region) { backend_->detach_region(region); }

    // -- the loop --

    // Runs turns until stop() is called on this thread. If stop() was called before run(), run()
    // returns at once. May be called again.
    void run();
    void stop() { stopping_ = true; }
    // Runs turns on the calling thread until `task` has ended; stop() does not interrupt it. Not
    // for simulated reactors: the VirtualWorld runs their turns.
    template <typename T>
    T run_until_done(Task<T> task);

    // For the simulation: runs one turn at time `now` without waiting. Returns true when more work
    // is ready.
    bool turn(Instant now);
    // True when a coroutine is ready or a message is waiting.
    bool work_waiting() const {
        return ready_count() > 0 || !long_steps_.empty() || !mailbox_.empty();
    }
    // The deadline of the earliest timer, or kNever.
    Instant next_deadline() const { return timers_.next_deadline(); }
    // For the simulation: marks the reactor as sleeping, so that the next message wakes its
    // backend.
    void expect_wake() { sleeping_.store(true, std::memory_order_relaxed); }

    // The const overload may be called from any thread, the other one only on this reactor's
    // thread.
    const ReactorStats& stats() const { return stats_; }
    ReactorStats& stats() { return stats_; }
    const char* backend_name() const { return backend_->name(); }

private:
    friend YieldAwaiter;
    friend LongStepAwaiter;
    friend PlainIoAwaiter;
    friend IoAwaiter;
    struct Root;

    static Root run_root(Reactor* reactor, Gate::Holder holder, Task<void> task);
    void schedule_growing(std::coroutine_handle<> handle);
    void begin_long_step();
    void resume_ready();
    std::size_t ready_count() const { return ready_tail_ - ready_head_; }
    bool ask_pollers();
    void wait_for_work();
    Poller::Look look();
    bool spin(Poller::Look look);
    // Updates now(), which is stale if no turn has run for a while.
    void begin_run() { now_ = backend_->now(); }

    std::unique_ptr<Backend> backend_;
    const ReactorOptions options_;
    Instant now_;  // The time at the end of the last wait.

    // The ready queue: a ring whose size is a power of two. It holds each live coroutine at most
    // once, so the number of live coroutines bounds it.
    std::unique_ptr<std::coroutine_handle<>[]> ready_;
    std::size_t ready_mask_;  // Size of the ring minus one.
    std::size_t ready_head_ = 0;
    std::size_t ready_tail_ = 0;
    std::uint32_t turn_budget_ = 0;
    IntrusiveList<LongStepAwaiter> long_steps_;  // Waiting to continue, oldest first.
    bool long_step_taken_ = false;               // A long step has begun in this turn.

    TimerHeap timers_;
    Mailbox mailbox_;
    std::atomic<bool> sleeping_ = false;
    IntrusiveList<Poller> pollers_;
    // A spin already polled the pollers: the next turn does not poll them again.
    bool pollers_asked_ = false;
    bool stopping_ = false;
    // One bit for each of the last eight spins: set if it found work.
    std::uint8_t spin_history_ = 0xff;
    std::uint32_t spin_pause_ = 0;
    // Held by tasks of run_until_done(). A task that threw is destroyed with the reactor.
    Gate own_tasks_;
    IntrusiveList<ListNode> roots_;  // Frames of spawned coroutines that have not ended.
    ReactorStats stats_;
};

// -- awaiters: used by co_await only --

class YieldAwaiter {
public:
    YieldAwaiter(Reactor& reactor, bool ready) : reactor_(reactor), ready_(ready) {}
    bool await_ready() const noexcept { return ready_; }
    void await_suspend(std::coroutine_handle<> handle) { reactor_.schedule(handle); }
    void await_resume() const noexcept {}

private:
    Reactor& reactor_;
    bool ready_;
};

class LongStepAwaiter final : public ListNode {
public:
    explicit LongStepAwaiter(Reactor& reactor) : reactor_(reactor) {}
    bool await_ready() {
        return reactor_.long_steps_.empty() && !std::exchange(reactor_.long_step_taken_, true);
    }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        reactor_.long_steps_.push_back(*this);
    }
    void await_resume() const noexcept {}

private:
    friend Reactor;
    Reactor& reactor_;
    std::coroutine_handle<> handle_;
};

class SleepAwaiter final : Timer, CancelHook {
public:
    SleepAwaiter(Reactor& reactor, Instant deadline, CancelSource* cancel)
        : Timer(&on_time),
          CancelHook(&on_cancel),
          reactor_(reactor),
          deadline_(deadline),
          cancel_(cancel) {}

    bool await_ready() const { return cancel_ != nullptr && cancel_->cancelled(); }
    void await_suspend(std::coroutine_handle<> handle);
    [[nodiscard]] Result<void> await_resume() const;

private:
    static void on_time(Timer& timer);
    static void on_cancel(CancelHook& hook);

    Reactor& reactor_;
    std::coroutine_handle<> handle_;
    Instant deadline_;
    CancelSource* cancel_;
    bool slept_ = false;
};

// An operation without a deadline or CancelSource: only its completion ends it.
class PlainIoAwaiter final : IoOp {
public:
    PlainIoAwaiter(Reactor& reactor, IoCode what, File on = {}, Buffer memory = {},
                   std::uint64_t at = 0)
        : IoOp(&on_complete), reactor_(reactor) {
        code = what;
        file = on;
        buffer = memory;
        offset = at;
    }
    ~PlainIoAwaiter() {
        if (in_flight) reactor_.backend_->abandon(*this);
    }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        reactor_.submit(*this);
    }
    // Returns the number of bytes transferred.
    [[nodiscard]] Result<std::uint32_t> await_resume() const {
        if (result < 0) [[unlikely]]
            return std::unexpected(os_error(-result, "I/O"));
        return static_cast<std::uint32_t>(result);
    }

private:
    static void on_complete(IoOp& op);

    Reactor& reactor_;
    std::coroutine_handle<> handle_;
};

// An operation with a deadline or a CancelSource.
class IoAwaiter final : IoOp, Timer, CancelHook {
public:
    IoAwaiter(Reactor& reactor, IoCode what, File on, Buffer memory, std::uint64_t at,
              std::uint32_t events, WaitOptions wait)
        : IoOp(&on_complete),
          Timer(&on_time),
          CancelHook(&on_cancel),
          reactor_(reactor),
          wait_(wait) {
        code = what;
        file = on;
        buffer = memory;
        offset = at;
        poll_events = events;
    }
    ~IoAwaiter() {
        if (in_flight) reactor_.backend_->abandon(*this);
    }

    bool await_ready() const { return wait_.cancel != nullptr && wait_.cancel->cancelled(); }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        end_ = End::kNatural;
        if (wait_.deadline != kNever) reactor_.arm(*this, wait_.deadline);
        if (wait_.cancel != nullptr) wait_.cancel->add(*this);
        reactor_.submit(*this);
    }
    // Returns the number of bytes transferred, or the poll events.
    [[nodiscard]] Result<std::uint32_t> await_resume() const {
        if (end_ == End::kNotStarted || result < 0) [[unlikely]]
            return failed();
        return static_cast<std::uint32_t>(result);
    }

private:
    friend Reactor;
    enum class End : std::uint8_t { kNotStarted, kNatural, kDeadline, kCancel };

    static void on_complete(IoOp& op);
    static void on_time(Timer& timer);
    static void on_cancel(CancelHook& hook);
    Result<std::uint32_t> failed() const;

    Reactor& reactor_;
    std::coroutine_handle<> handle_;
    WaitOptions wait_;
    End end_ = End::kNotStarted;
};

// -- the hot path of every operation, inline so that the compiler can optimize it as a whole --

inline void Reactor::schedule(std::coroutine_handle<> handle) {
    if (ready_count() > ready_mask_) [[unlikely]]
        return schedule_growing(handle);
    ready_[ready_tail_ & ready_mask_] = handle;
    ++ready_tail_;
}

inline void Reactor::submit(IoOp& op) {
    ENSURE(!op.in_flight);
    op.in_flight = true;
    stats_.io_submitted.add(1);
    backend_->submit(op);
}

inline PlainIoAwaiter Reactor::nop() {
    return {*this, IoCode::kNop};
}
inline PlainIoAwaiter Reactor::read(File file, Buffer into, std::uint64_t offset) {
    return {*this, IoCode::kRead, file, into, offset};
}
inline PlainIoAwaiter Reactor::write(File file, Buffer from, std::uint64_t offset) {
    return {*this, IoCode::kWrite, file, from, offset};
}
inline PlainIoAwaiter Reactor::gather(File file, std::span<const iovec> parts,
                                      std::uint64_t offset) {
    // The kernel only reads the iovecs, so the const_cast is safe.
    auto* const first = reinterpret_cast<std::byte*>(const_cast<iovec*>(parts.data()));
    return {*this, IoCode::kGather, file, {.data = first, .size_bytes = parts.size()}, offset};
}
inline PlainIoAwaiter Reactor::sync_data(File file) {
    return {*this, IoCode::kSyncData, file};
}
inline PlainIoAwaiter Reactor::sync(File file) {
    return {*this, IoCode::kSync, file};
}
inline IoAwaiter Reactor::read(File file, Buffer into, std::uint64_t offset, WaitOptions wait) {
    return {*this, IoCode::kRead, file, into, offset, 0, wait};
}
inline IoAwaiter Reactor::write(File file, Buffer from, std::uint64_t offset, WaitOptions wait) {
    return {*this, IoCode::kWrite, file, from, offset, 0, wait};
}
inline IoAwaiter Reactor::sync_data(File file, WaitOptions wait) {
    return {*this, IoCode::kSyncData, file, {}, 0, 0, wait};
}
inline IoAwaiter Reactor::sync(File file, WaitOptions wait) {
    return {*this, IoCode::kSync, file, {}, 0, 0, wait};
}
inline IoAwaiter Reactor::poll(int fd, std::uint32_t events, WaitOptions wait) {
    return {*this, IoCode::kPoll, File{.fd = fd}, {}, 0, events, wait};
}

inline LongStepAwaiter Reactor::long_step() {
    return LongStepAwaiter{*this};
}
inline YieldAwaiter Reactor::yield() {
    return {*this, false};
}
inline YieldAwaiter Reactor::maybe_yield() {
    if (turn_budget_ == 0) return {*this, false};
    --turn_budget_;
    return {*this, true};
}

namespace detail {
template <typename T>
Task<void> keep_result(Task<T> task, std::shared_ptr<std::optional<T>> result) {
    T value = co_await std::move(task);
    result->emplace(std::move(value));
}
inline Task<void> keep_result(Task<void> task, std::shared_ptr<bool> done) {
    co_await std::move(task);
    *done = true;
}
}  // namespace detail

template <typename T>
T Reactor::run_until_done(Task<T> task) {
    begin_run();
    if constexpr (std::is_void_v<T>) {
        const auto done = std::make_shared<bool>(false);
        spawn(own_tasks_, detail::keep_result(std::move(task), done));
        for (turn(now_); !*done; turn(now_)) wait_for_work();
    } else {
        const auto result = std::make_shared<std::optional<T>>();
        spawn(own_tasks_, detail::keep_result(std::move(task), result));
        for (turn(now_); !result->has_value(); turn(now_)) wait_for_work();
        return std::move(**result);
    }
}

}  // namespace fopd::core
