#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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

// How long a wait may last and who may end it early.
struct WaitOptions {
    Instant deadline = kNever;
    CancelSource* cancel = nullptr;
};

// What a reactor has done so far. Written by its thread, readable from any.
struct ReactorStats {
    Counter turns;
    Counter sleeps;
    Counter resumed;  // Coroutines taken from the ready queue.
    Counter timers_fired;
    Counter messages;
    Counter io_submitted;
    Counter io_completed;
    Counter spins_won;     // Spins that ended with something to do.
    Counter spins_lost;    // Spins that ended in a sleep all the same.
    Counter last_turn_ns;  // When the last turn began, on the reactor's time line.
    Counter missed_wakes;  // See FdWatch::missed_wake().
};

struct ReactorOptions {
    // How long to look for work before going to sleep; 0 never spins. Worth it only with a core to
    // spare.
    Duration spin{0};
};

class SleepAwaiter;
class PlainIoAwaiter;
class IoAwaiter;
class YieldAwaiter;
class LongStepAwaiter;

// One thread's event loop: coroutines that are ready, timers, messages from other threads, I/O. In
// a turn it delivers messages, fires timers, asks its pollers, resumes what was ready by then, lets
// the pollers send what was gathered, and waits for I/O if nothing is left to do. now() stands
// still between two waits.
//
// Everything but post() and stats() belongs to the thread that calls run(), or turn().
class Reactor {
public:
    explicit Reactor(std::unique_ptr<Backend> backend, ReactorOptions options = {});
    // Drops the coroutines that are still suspended in it. Requires: nothing is in flight that a
    // kernel could still write to; a real reactor is empty by then because its gates were closed.
    ~Reactor();
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    // -- coroutines --

    // Runs `task` in the background, from the next turn on. The gate must be open; it cannot be
    // waited shut before the task has ended.
    void spawn(Gate& gate, Task<void> task);
    // The same from now on: within this call it runs until it waits for something. For what a
    // poller gathered, so that its I/O leaves with this turn.
    void start(Gate& gate, Task<void> task);
    // Continues a suspended coroutine in a later turn, in the order of these calls.
    void schedule(std::coroutine_handle<> handle);
    // Destroys every spawned coroutine where it is suspended, the last spawned first, so that what
    // a coroutine lent to those it spawned outlives them. The end of a process, in the simulated
    // world: the objects whose coroutines these were can be destroyed next, then the reactor.
    void drop_coroutines();
    // Lets others run if this turn has resumed enough already. For loops that may not suspend.
    YieldAwaiter maybe_yield();
    // Lets everything run that is ready now.
    YieldAwaiter yield();
    // Before a step of work that takes long, such as looking at some hundred entries: of all who
    // ask one goes on in a turn, in the order of these calls. So what is short waits for one such
    // step, however many there are to do.
    LongStepAwaiter long_step();

    // -- time --

    Instant now() const { return now_; }
    // Result<void>: fine at the deadline, kCancelled before.
    SleepAwaiter sleep_until(Instant deadline, CancelSource* cancel = nullptr);
    SleepAwaiter sleep_for(Duration span, CancelSource* cancel = nullptr);
    void arm(Timer& timer, Instant deadline) { timers_.arm(timer, deadline); }

    // -- other threads --

    // From any thread: `message` is delivered on this one. The reactor outlives the call, so it is
    // destroyed only when the threads that post to it have ended.
    void post(Message& message);

    // -- libraries that must be asked --

    // From now on `poller` takes part in every turn. It is removed before it is destroyed; its own
    // destructor does that too.
    void add_poller(Poller& poller) { pollers_.push_back(poller); }
    void remove_poller(Poller& poller) { poller.unlink(); }

    // -- I/O. A short read or write is a length, not an error; a wait that ends early still waits
    // for the buffer to come back. --

    PlainIoAwaiter nop();
    PlainIoAwaiter read(File file, Buffer into, std::uint64_t offset);
    IoAwaiter read(File file, Buffer into, std::uint64_t offset, WaitOptions wait);
    PlainIoAwaiter write(File file, Buffer from, std::uint64_t offset);
    IoAwaiter write(File file, Buffer from, std::uint64_t offset, WaitOptions wait);
    // From all the pieces, one behind the other. They stay until it has ended, as their bytes do.
    PlainIoAwaiter gather(File file, std::span<const iovec> pieces, std::uint64_t offset);
    // Makes what was written durable, without its meta-data where that is not needed to read it
    // back.
    PlainIoAwaiter sync_data(File file);
    IoAwaiter sync_data(File file, WaitOptions wait);
    PlainIoAwaiter sync(File file);
    IoAwaiter sync(File file, WaitOptions wait);
    // Waits until the descriptor has one of the poll(2) `events`; looks once, now and when it
    // changes.
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

    // Turns until stop() was called on this thread; a stop() before that ends it at once. May be
    // called again.
    void run();
    void stop() { stopping_ = true; }
    // Runs `task` to its end on the calling thread, and everything else meanwhile; stop() does not
    // end it. Not for the simulated world, whose reactors the VirtualWorld turns.
    template <typename T>
    T run_until_done(Task<T> task);

    // For the simulated world: one turn at `now`, without waiting. True when there is more to do at
    // once.
    bool turn(Instant now);
    // True when a turn would find a coroutine to resume or a message.
    bool work_waiting() const {
        return ready_count() > 0 || !long_steps_.empty() || !mailbox_.empty();
    }
    // When the next turn is due at the latest.
    Instant next_deadline() const { return timers_.next_deadline(); }
    // For the simulated world: from now on a message wakes the backend.
    void expect_wake() { sleeping_.store(true, std::memory_order_relaxed); }

    // From any thread; what is writable, on this one.
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
    // The time went on while nobody turned.
    void begin_run() { now_ = backend_->now(); }

    std::unique_ptr<Backend> backend_;
    const ReactorOptions options_;
    Instant now_;  // As of the end of the last wait.

    // The ready queue: a ring whose size is a power of two. It holds each live coroutine at most
    // once, and is bounded by what bounds those.
    std::unique_ptr<std::coroutine_handle<>[]> ready_;
    std::size_t ready_mask_;  // Its size less one.
    std::size_t ready_head_ = 0;
    std::size_t ready_tail_ = 0;
    std::uint32_t turn_budget_ = 0;
    IntrusiveList<LongStepAwaiter> long_steps_;  // That wait for their turn.
    bool long_step_taken_ = false;               // In this turn.

    TimerHeap timers_;
    Mailbox mailbox_;
    std::atomic<bool> sleeping_ = false;
    IntrusiveList<Poller> pollers_;
    bool pollers_asked_ = false;  // A spin ended with what they found: the turn is about that.
    bool stopping_ = false;
    std::uint8_t spin_history_ = 0xff;  // The last eight spins, a bit each: set when it found work.
    std::uint32_t spin_pause_ = 0;
    Gate own_tasks_;                 // Of run_until_done(): one that failed goes with its reactor.
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

// An operation that nothing but its completion ends.
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
    // The number of bytes.
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
    // The number of bytes, or the poll events.
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

// -- what every operation passes through, kept where the compiler sees it whole --

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
inline PlainIoAwaiter Reactor::gather(File file, std::span<const iovec> pieces,
                                      std::uint64_t offset) {
    // The kernel reads them, as it does the bytes of a write.
    auto* const first = reinterpret_cast<std::byte*>(const_cast<iovec*>(pieces.data()));
    return {*this, IoCode::kGather, file, {.data = first, .size_bytes = pieces.size()}, offset};
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
