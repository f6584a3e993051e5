// SPDX-License-Identifier: BSD-2-Clause
#include "client/load.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "client/client_times.h"
#include "core/clock.h"

namespace fopd::client {

namespace {

// The failure may pass: the load goes on.
bool load_may_pass(libfopd::Status status) {
    return status == libfopd::Status::kTryAgain || status == libfopd::Status::kTimedOut ||
           status == libfopd::Status::kFailed;
}

// Counts the calls in flight of all jobs; main waits for the last one.
class Running {
public:
    Running() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Running() {
        if (fd_ >= 0) close(fd_);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    void begin(std::size_t count) { left_ = count; }
    void one_ended(const libfopd::Outcome* failure) {
        const std::lock_guard lock(mutex_);
        const bool counts = failure != nullptr && !stopped_;
        if (counts) failure_ = *failure;
        if (counts) stopped_ = true;
        if (--left_ == 0) eventfd_write(fd_, 1);
    }
    // Calls that fail after this are not failures of the load.
    void stop() {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    bool stopped() const { return stopped_; }
    // False: a signal has arrived.
    bool wait(Interrupts& interrupts, const core::Clock& clock) {
        if (!interrupts.wait(fd_, kNever - clock.now())) return false;
        eventfd_t count = 0;
        eventfd_read(fd_, &count);
        return true;
    }
    std::optional<libfopd::Outcome> failure() {
        const std::lock_guard lock(mutex_);
        return failure_;
    }

private:
    const int fd_;  // Readable when all have ended.
    std::mutex mutex_;
    std::size_t left_ = 0;
    std::atomic<bool> stopped_ = false;
    std::optional<libfopd::Outcome> failure_;
};

// A session with `depth` calls in flight. From the end of the first call on, only its thread uses
// the counts.
class Job {
public:
    Job(const LoadOptions& options, const core::Clock& clock, const LoadWindow& window,
        Running& running)
        : options_(options), clock_(clock), window_(window), running_(running), times_(clock) {}

    // Tells `running` when there is a session, or none.
    libfopd::Outcome open() {
        const libfopd::Outcome opened = libfopd::Client::open(options_.server, client_);
        if (!opened) return opened;
        if (options_.explain) pass_times_on(client_.handle(), times_);
        client_.connected({}, [this](const libfopd::Outcome& outcome) {
            running_.one_ended(outcome ? nullptr : &outcome);
        });
        return opened;
    }
    void start() {
        times_.count_from(window_.begin, window_.end);
        for (std::uint32_t i = 0; i < options_.depth; ++i) {
            CallState& call = calls_.emplace_back();
            call.data.assign(options_.size_bytes, static_cast<char>('a' + i % 26));
            call.into.resize(options_.size_bytes);
        }
        for (CallState& call : calls_) begin(call);
    }
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closing_ = true;
        }
        client_.close();
    }
    // After close().
    void add_to(LoadResult& result) const {
        result.latency.merge(latency_);
        result.errors += errors_;
        if (result.times != nullptr) result.times->add(times_);
        for (const CallState& call : calls_) {
            if (call.answered && options_.op != LoadOp::kPing && call.into != call.data) {
                ++result.errors;
            }
        }
    }

private:
    struct CallState {
        std::string data;
        std::string into;
        Instant begun;
        bool answered = false;
    };

    void begin(CallState& call) {
        const std::lock_guard lock(mutex_);
        if (closing_) return running_.one_ended(nullptr);
        call.begun = clock_.now();
        auto done = [this, &call](const libfopd::Outcome& outcome) { on_done(call, outcome); };
        switch (options_.op) {
            case LoadOp::kPing: return client_.ping({}, std::move(done));
            case LoadOp::kEcho:
                return client_.echo(call.data.data(), call.into.data(), call.data.size(), {},
                                    std::move(done));
            case LoadOp::kBulkEcho:
                return client_.bulk_echo(call.data.data(), call.into.data(), call.data.size(), {},
                                         std::move(done));
        }
    }
    void on_done(CallState& call, const libfopd::Outcome& outcome) {
        if (running_.stopped()) return running_.one_ended(nullptr);
        const Instant now = clock_.now();
        if (!outcome && !load_may_pass(outcome.status)) return running_.one_ended(&outcome);
        if (outcome) {
            call.answered = true;
            if (window_.holds(call.begun, now)) latency_.record(now - call.begun);
        } else if (now >= window_.begin) {
            // Not holds(): a call that times out may be longer than the window.
            ++errors_;
        }
        if (now >= window_.end) return running_.one_ended(nullptr);
        begin(call);
    }

    const LoadOptions& options_;
    const core::Clock& clock_;
    const LoadWindow& window_;
    Running& running_;
    std::deque<CallState> calls_;
    core::Histogram latency_;
    std::uint64_t errors_ = 0;
    // No call begins while the client is closed. Recursive: a call may end before it has returned.
    std::recursive_mutex mutex_;
    bool closing_ = false;
    LoadTimes times_;  // Outlives the client.
    libfopd::Client client_;
};

}  // namespace

std::expected<std::unique_ptr<LoadResult>, libfopd::Outcome> run_load(const LoadOptions& options,
                                                                      Interrupts& interrupts) {
    const core::PosixClock clock;
    LoadWindow window{};
    Running running;
    std::deque<Job> jobs;
    bool going_on = true;
    for (std::uint32_t i = 0; going_on && !running.stopped() && i < options.jobs; ++i) {
        running.begin(1);
        Job& job = jobs.emplace_back(options, clock, window, running);
        if (const libfopd::Outcome opened = job.open(); !opened) return std::unexpected(opened);
        going_on = running.wait(interrupts, clock);
    }
    if (going_on && !running.stopped()) {
        running.begin(std::size_t{options.jobs} * options.depth);
        window.begin = after(clock.now(), options.warm_up);
        window.end = after(window.begin, options.window);
        for (Job& job : jobs) job.start();
        going_on = running.wait(interrupts, clock);
    }
    running.stop();
    const Instant stopped_at = clock.now();
    for (Job& job : jobs) job.close();
    if (auto failure = running.failure()) return std::unexpected(*std::move(failure));
    auto result = std::make_unique<LoadResult>();
    if (options.explain) result->times = std::make_unique<LoadTimes>(clock);
    result->window = going_on ? options.window : window.over_at(stopped_at);
    result->interrupted = !going_on;
    for (const Job& job : jobs) job.add_to(*result);
    return result;
}

}  // namespace fopd::client
