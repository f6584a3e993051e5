#include "daemon/locality_threads.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include <pthread.h>
#include <sched.h>

#include "core/uring_backend.h"

namespace fopd::daemon {

class LocalityThreads::Thread final {
public:
    Thread(std::unique_ptr<core::Backend> backend, Duration spin, LocalityThreads& owner)
        : reactor_(std::move(backend), {.spin = spin}), owner_(owner) {}
    ~Thread() {
        if (thread_.joinable()) thread_.join();
    }

    core::Reactor& reactor() { return reactor_; }
    bool ended() const { return ended_; }

    // Returns the core the thread runs on, or -1. Throws std::system_error if no thread can be
    // created.
    int start(std::uint32_t index, int core) {
        // An exception that gets this far is a defect: noexcept ends the process where it was
        // thrown.
        thread_ = std::thread([this]() noexcept {
            reactor_.run();
            if (says_end_) owner_.control_.post(end_);
        });
        thread_id_ = thread_.native_handle();
        const std::string name = "fopd-loc-" + std::to_string(index);
        pthread_setname_np(thread_.native_handle(), name.c_str());
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<std::size_t>(core), &set);
        return pthread_setaffinity_np(thread_.native_handle(), sizeof set, &set) == 0 ? core : -1;
    }

    void stop() { reactor_.post(stop_); }

    Duration cpu_time() const {
        clockid_t clock{};
        timespec used{};
        if (pthread_getcpuclockid(thread_id_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
            return Duration{0};  // The thread has ended.
        }
        return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    }

    // Ends the thread without the control reactor. Blocks for a turn of the thread's loop.
    void end_unheard() {
        if (!thread_.joinable()) return;
        says_end_ = false;
        stop();
        thread_.join();
    }

private:
    // Delivered on the locality: its loop ends.
    struct Stop final : core::Message {
        explicit Stop(core::Reactor& loop) : Message(&deliver), reactor(loop) {}
        static void deliver(Message& message) { static_cast<Stop&>(message).reactor.stop(); }
        core::Reactor& reactor;
    };
    // Delivered on the control reactor: it has ended.
    struct End final : core::Message {
        explicit End(Thread& owner) : Message(&deliver), thread(owner) {}
        static void deliver(Message& message) {
            Thread& thread = static_cast<End&>(message).thread;
            thread.ended_ = true;
            thread.owner_.thread_ended_.wake_all();
        }
        Thread& thread;
    };

    core::Reactor reactor_;
    LocalityThreads& owner_;
    Stop stop_{reactor_};
    End end_{*this};
    bool ended_ = false;
    bool says_end_ = true;  // Set before the message that ends the loop, read after the loop.
    std::thread thread_;
    pthread_t thread_id_{};
};

LocalityThreads::LocalityThreads(core::Reactor& control)
    : control_(control), thread_ended_(control) {}

LocalityThreads::~LocalityThreads() = default;

Started<std::unique_ptr<LocalityThreads>> LocalityThreads::start(LocalityThreadsOptions options,
                                                                 core::Reactor& control,
                                                                 const core::Clock& clock,
                                                                 core::EventSink& events) {
    std::unique_ptr<LocalityThreads> localities(new LocalityThreads(control));
    core::NullEventSink silence;
    const std::vector<int> cores = usable_cores();
    const Duration spin = options.count < cores.size() ? options.spin : Duration{0};
    for (std::uint32_t index = 0; index < options.count; ++index) {
        // A missing kernel feature affects all rings: only the first reports it.
        auto backend = core::make_uring_backend(clock, index == 0 ? events : silence,
                                                core::UringOptions{.sqpoll = options.sqpoll});
        if (!backend) {
            return std::unexpected(StartProblem{
                .exit_code = kExitSystem, .message = core::explain_no_uring(backend.error())});
        }
        localities->threads_.push_back(
            std::make_unique<Thread>(std::move(*backend), spin, *localities));
    }
    // Started only when all rings exist: a running thread must be stopped, a ring need not be.
    for (std::uint32_t index = 0; index < options.count; ++index) {
        const int core = cores[index % cores.size()];
        try {
            localities->cores_.push_back(localities->threads_[index]->start(index, core));
        } catch (const std::system_error& problem) {
            for (const auto& thread : localities->threads_) thread->end_unheard();
            return std::unexpected(
                StartProblem{.exit_code = kExitSystem,
                             .message = "thread of locality " + std::to_string(index) + ": " +
                                        problem.code().message() + kThreadAdvice});
        }
    }
    if (const auto unpinned = std::ranges::count(localities->cores_, -1); unpinned > 0) {
        emit(events, core::Level::kWarn, "daemon.not_pinned",
             {{"localities", static_cast<std::uint64_t>(unpinned)}});
    }
    return localities;
}

Task<bool> LocalityThreads::stop(Instant deadline) {
    for (const auto& thread : threads_) thread->stop();
    for (const auto& thread : threads_) {
        while (!thread->ended()) {
            const core::WaitOptions options{.deadline = deadline};
            const auto woken = co_await thread_ended_.wait(options);
            if (!woken && !thread->ended()) co_return false;
        }
    }
    co_return true;
}

Duration LocalityThreads::cpu_time(std::size_t index) const {
    return threads_[index]->cpu_time();
}

std::vector<core::Reactor*> LocalityThreads::reactors() {
    std::vector<core::Reactor*> reactors;
    for (const auto& thread : threads_) reactors.push_back(&thread->reactor());
    return reactors;
}

std::vector<int> usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int core = 0; core < CPU_SETSIZE; ++core) {
            if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
        }
    }
    if (cores.empty()) cores.push_back(0);
    return cores;
}

}  // namespace fopd::daemon
