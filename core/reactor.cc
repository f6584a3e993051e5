#include "core/reactor.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fopd::core {

namespace {

// The number of maybe_yield() calls per reactor turn that do not suspend.
constexpr std::uint32_t kTurnBudget = 128;
// A power of two.
constexpr std::size_t kReadyAtFirst = 256;
// When five of the last eight spins found nothing, this many sleeps begin without one.
constexpr std::uint32_t kSpinPause = 64;

void relax_cpu() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

}  // namespace

// The outermost frame of a spawned coroutine: owns the task and its gate holder, is in the
// reactor's list while it lives, and destroys itself at the end.
struct Reactor::Root {
    struct promise_type : ListNode, CachedFrame {
        promise_type(Reactor* reactor, const Gate::Holder&, const Task<void>&) {
            reactor->roots_.push_back(*this);
        }
        Root get_return_object() {
            return Root{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() { throw; }
    };
    std::coroutine_handle<> handle;
};

Reactor::Root Reactor::run_root(Reactor*, Gate::Holder, Task<void> task) {
    co_await std::move(task);
}

Reactor::Reactor(std::unique_ptr<Backend> backend, ReactorOptions options)
    : backend_(std::move(backend)),
      options_(options),
      now_(backend_->now()),
      ready_(std::make_unique<std::coroutine_handle<>[]>(kReadyAtFirst)),
      ready_mask_(kReadyAtFirst - 1) {}

Reactor::~Reactor() {
    drop_coroutines();
}

void Reactor::drop_coroutines() {
    while (!roots_.empty()) {
        auto& promise = static_cast<Root::promise_type&>(roots_.back());
        std::coroutine_handle<Root::promise_type>::from_promise(promise).destroy();
    }
    ready_head_ = ready_tail_;  // Includes coroutines woken by the destructors.
}

void Reactor::spawn(Gate& gate, Task<void> task) {
    const Root root = run_root(this, gate.enter(), std::move(task));
    schedule(root.handle);
}

void Reactor::start(Gate& gate, Task<void> task) {
    const Root root = run_root(this, gate.enter(), std::move(task));
    root.handle.resume();
}

void Reactor::schedule_growing(std::coroutine_handle<> handle) {
    const std::size_t mask = ready_mask_ * 2 + 1;
    auto larger = std::make_unique<std::coroutine_handle<>[]>(mask + 1);
    for (std::size_t i = ready_head_; i != ready_tail_; ++i) {
        larger[i & mask] = ready_[i & ready_mask_];
    }
    ready_ = std::move(larger);
    ready_mask_ = mask;
    schedule(handle);
}

SleepAwaiter Reactor::sleep_until(Instant deadline, CancelSource* cancel) {
    return {*this, deadline, cancel};
}

SleepAwaiter Reactor::sleep_for(Duration span, CancelSource* cancel) {
    return {*this, after(now_, span), cancel};
}

void Reactor::post(Message& message) {
    mailbox_.push(message);
    if (sleeping_.load(std::memory_order_seq_cst) &&
        sleeping_.exchange(false, std::memory_order_acq_rel)) {
        backend_->wake();
    }
}

void Reactor::run() {
    begin_run();
    while (!stopping_) {
        turn(now_);
        if (!stopping_) wait_for_work();
    }
    stopping_ = false;
}

bool Reactor::turn(Instant now) {
    now_ = now;
    stats_.turns.add(1);
    stats_.last_turn_ns.set(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
    turn_budget_ = kTurnBudget;

    if (const unsigned delivered = mailbox_.deliver(); delivered > 0) {
        stats_.messages.add(delivered);
    }
    // At most as many as are armed now: a timer that arms itself again for this instant fires in
    // the next turn.
    std::size_t timers = timers_.count();
    while (timers > 0 && timers_.fire_next(now_)) {
        stats_.timers_fired.add(1);
        --timers;
    }
    if (!std::exchange(pollers_asked_, false)) ask_pollers();
    begin_long_step();
    resume_ready();
    pollers_.for_each([](Poller& poller) { poller.end_of_turn(); });
    return work_waiting();
}

bool Reactor::ask_pollers() {
    bool found = false;
    pollers_.for_each([&found](Poller& poller) { found = poller.poll() || found; });
    return found;
}

// Placed after the ready coroutines, so that it does not delay work that the pollers have brought.
void Reactor::begin_long_step() {
    LongStepAwaiter* const next = long_steps_.pop_front();
    long_step_taken_ = next != nullptr;
    if (next != nullptr) schedule(next->handle_);
}

void Reactor::resume_ready() {
    const std::size_t end = ready_tail_;
    stats_.resumed.add(end - ready_head_);
    while (ready_head_ != end) {
        const std::coroutine_handle<> handle = ready_[ready_head_ & ready_mask_];
        ++ready_head_;
        handle.resume();
    }
}

void Reactor::wait_for_work() {
    if (work_waiting() || timers_.next_deadline() <= now_) {
        backend_->wait(Instant::min());
        now_ = backend_->now();
        return;
    }
    if (options_.spin.count() > 0) {
        const Poller::Look how = look();
        const bool spins = how == Poller::Look::kIfItPays || how == Poller::Look::kAlways;
        if (spins && spin(how)) return;
    }

    sleeping_.store(true, std::memory_order_seq_cst);
    if (mailbox_.empty()) {
        Duration limit = Duration::max();
        pollers_.for_each(
            [&limit](Poller& poller) { limit = std::min(limit, poller.sleep_max()); });
        if (limit.count() > 0) stats_.sleeps.add(1);
        backend_->wait(limit.count() > 0 ? std::min(timers_.next_deadline(), after(now_, limit))
                                         : Instant::min());
        now_ = backend_->now();
    }
    sleeping_.store(false, std::memory_order_relaxed);
}

Poller::Look Reactor::look() {
    if (pollers_.empty()) return Poller::Look::kIfItPays;
    auto wish = Poller::Look::kNoNeed;
    pollers_.for_each([&wish](Poller& poller) { wish = std::max(wish, poller.look()); });
    return wish;
}

// Looks for work without sleeping. Skips spinning for a while after spins that mostly failed; but
// kAlways spins whatever earlier spins found, and does not count among them.
bool Reactor::spin(Poller::Look look) {
    const bool must_pay = look == Poller::Look::kIfItPays;
    if (must_pay && spin_pause_ > 0) {
        --spin_pause_;
        return false;
    }
    backend_->wait(Instant::min());
    now_ = backend_->now();
    const Instant end = std::min(after(now_, options_.spin), timers_.next_deadline());
    bool found = work_waiting();
    while (!found && now_ < end) {
        for (int i = 0; i < 16 && !found; ++i) {
            relax_cpu();
            found = !mailbox_.empty() || backend_->has_completions();
            if (!found) found = pollers_asked_ = ask_pollers();
        }
        now_ = backend_->now();
    }
    // No system call here if nothing has completed: what the pollers have submitted goes to the
    // kernel after the next turn, with what that submits.
    if (backend_->has_completions()) {
        backend_->wait(Instant::min());
        found = true;
    }
    found = found || timers_.next_deadline() <= now_;
    if (must_pay) {
        spin_history_ = static_cast<std::uint8_t>((spin_history_ << 1) | (found ? 1 : 0));
    }
    if (std::popcount(spin_history_) < 4) {
        spin_pause_ = kSpinPause;
        spin_history_ = 0xff;
    }
    (found ? stats_.spins_won : stats_.spins_lost).add(1);
    return found;
}

// -- awaiters --

void SleepAwaiter::await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    reactor_.arm(*this, deadline_);
    if (cancel_ != nullptr) cancel_->add(*this);
}

Result<void> SleepAwaiter::await_resume() const {
    if (slept_) return {};
    return std::unexpected(Error{.code = Errc::kCancelled, .context = "sleep"});
}

void SleepAwaiter::on_time(Timer& timer) {
    auto& self = static_cast<SleepAwaiter&>(timer);
    self.slept_ = true;
    self.unlink();
    self.reactor_.schedule(self.handle_);
}

void SleepAwaiter::on_cancel(CancelHook& hook) {
    auto& self = static_cast<SleepAwaiter&>(hook);
    self.disarm();
    self.reactor_.schedule(self.handle_);
}

Result<std::uint32_t> IoAwaiter::failed() const {
    if (end_ == End::kNotStarted) {
        return std::unexpected(Error{.code = Errc::kCancelled, .context = "I/O"});
    }
    // The kernel reports EINTR if it cancels an operation that a worker thread has already begun.
    if (end_ != End::kNatural && (result == -ECANCELED || result == -EINTR)) {
        const Errc reason = end_ == End::kDeadline ? Errc::kTimedOut : Errc::kCancelled;
        return std::unexpected(Error{.code = reason, .context = "I/O"});
    }
    return std::unexpected(os_error(-result, "I/O"));
}

void PlainIoAwaiter::on_complete(IoOp& op) {
    auto& self = static_cast<PlainIoAwaiter&>(op);
    self.reactor_.stats_.io_completed.add(1);
    self.reactor_.schedule(self.handle_);
}

void IoAwaiter::on_complete(IoOp& op) {
    auto& self = static_cast<IoAwaiter&>(op);
    self.disarm();
    self.unlink();
    self.reactor_.stats_.io_completed.add(1);
    self.reactor_.schedule(self.handle_);
}

// The operation ends when the kernel completes it: until then the kernel may write to the buffer.
void IoAwaiter::on_time(Timer& timer) {
    auto& self = static_cast<IoAwaiter&>(timer);
    self.unlink();
    self.end_ = End::kDeadline;
    self.reactor_.cancel(self);
}

void IoAwaiter::on_cancel(CancelHook& hook) {
    auto& self = static_cast<IoAwaiter&>(hook);
    self.disarm();
    self.end_ = End::kCancel;
    self.reactor_.cancel(self);
}

}  // namespace fopd::core
