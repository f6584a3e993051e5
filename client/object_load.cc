// SPDX-License-Identifier: BSD-2-Clause
#include "client/object_load.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "client/complaints.h"
#include "client/interrupts.h"
#include "client/transfer.h"
#include "core/clock.h"
#include "core/gate.h"
#include "core/printable.h"
#include "core/random.h"

namespace fopd::client {

namespace {

// The failure may pass: the load goes on.
bool object_load_may_pass(fop::Status status) {
    return status == fop::Status::kTryAgain || status == fop::Status::kBusy ||
           status == fop::Status::kTimedOut || status == fop::Status::kInternal;
}

void fill(std::span<std::byte> bytes, core::Random& random) {
    for (std::byte& each : bytes) each = static_cast<std::byte>(random.below(256));
}

// Repeats one block of random bytes, so that no block can be compressed.
class Noise final : public ByteSource {
public:
    Noise(std::uint64_t size_bytes, std::uint64_t seed) : size_bytes_(size_bytes), random_(seed) {
        fill(block_, random_);
    }
    Task<Outcome<std::size_t>> read(std::uint64_t offset, std::span<std::byte> into) override {
        const std::uint64_t left = size_bytes_ - std::min(size_bytes_, offset);
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
        for (std::size_t at = 0; at < size; at += block_.size()) {
            std::ranges::copy_n(block_.begin(),
                                static_cast<std::ptrdiff_t>(std::min(block_.size(), size - at)),
                                into.begin() + static_cast<std::ptrdiff_t>(at));
        }
        co_return size;
    }
    bool repeats() const override { return true; }
    std::uint64_t size_bytes() const override { return size_bytes_; }

private:
    const std::uint64_t size_bytes_;
    core::Random random_;
    std::array<std::byte, 4096> block_{};
};

// The state that all jobs share. The warm-up begins when all of them are connected.
class ObjectRunning {
public:
    ObjectRunning(const ObjectLoadOptions& options, const core::Clock& clock)
        : options_(options),
          clock_(clock),
          fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        left_ = unready_ = options.jobs;
    }
    ~ObjectRunning() {
        for (const int fd : {fd_, stop_fd_}) {
            if (fd >= 0) close(fd);
        }
    }
    ObjectRunning(const ObjectRunning&) = delete;
    ObjectRunning& operator=(const ObjectRunning&) = delete;

    // False if a job has failed.
    bool wait_for_all() {
        std::unique_lock lock(mutex_);
        if (--unready_ == 0) {
            window_.begin = after(clock_.now(), options_.warm_up);
            window_.end = after(window_.begin, options_.window);
            all_ready_.notify_all();
        }
        all_ready_.wait(lock, [this] { return unready_ == 0 || stopped_; });
        return !stopped_;
    }
    void fail(LoadFailure failure) {
        const std::lock_guard lock(mutex_);
        if (stopped_) return;
        failure_ = std::move(failure);
        stop_all();
    }
    // Operations that fail after this are not failures of the load. Returns how much of the window
    // is over.
    Duration stop() {
        const std::lock_guard lock(mutex_);
        if (!stopped_) stop_all();
        return window_.over_at(clock_.now());
    }
    void one_ended() {
        const std::lock_guard lock(mutex_);
        if (--left_ == 0) eventfd_write(fd_, 1);
    }
    // Readable when all jobs have ended.
    int fd() const { return fd_; }
    // Readable when the jobs are to end at once.
    int stop_fd() const { return stop_fd_; }
    bool stopped() const { return stopped_; }
    const LoadWindow& window() const { return window_; }  // REQUIRES: wait_for_all() has returned.
    std::optional<LoadFailure> take_failure() {
        const std::lock_guard lock(mutex_);
        return std::exchange(failure_, std::nullopt);
    }

private:
    // REQUIRES: mutex_ is locked.
    void stop_all() {
        stopped_ = true;
        eventfd_write(stop_fd_, 1);
        all_ready_.notify_all();
    }

    const ObjectLoadOptions& options_;
    const core::Clock& clock_;
    const int fd_;
    const int stop_fd_;
    std::mutex mutex_;
    std::condition_variable all_ready_;
    std::uint32_t left_ = 0;
    std::uint32_t unready_ = 0;
    std::atomic<bool> stopped_ = false;
    std::optional<LoadFailure> failure_;
    LoadWindow window_{};
};

// An object to read or write; for the creation of objects, the prefix of their names.
struct Target {
    std::string name;
    fop::Fid fid{};
    std::uint64_t size_bytes = 0;
};

// Failures are printed, and otherwise ignored.
Task<void> remove_one(ObjectSession* session, Target target, Duration timeout) {
    std::string name = target.name;
    const auto removed = co_await session->objects().remove(
        target.fid, std::move(name), {.deadline = after(session->clock().now(), timeout)});
    if (removed) co_return;
    complain("bench: " + core::printable(target.name) +
             ": it could not be removed: " + removed.error().words);
}

// A thread with its own sessions, on which `depth` operations are in flight.
class ObjectJob {
public:
    ObjectJob(const ObjectLoadOptions& options, const core::Clock& clock, ObjectRunning& running,
              const Target& target, std::uint32_t number)
        : options_(options),
          clock_(clock),
          running_(running),
          target_(target),
          prefix_(target.name + "-" + std::to_string(number) + "-"),
          times_(clock) {
        thread_ = std::thread([this] {
            run();
            running_.one_ended();
        });
    }
    void join() { thread_.join(); }
    // After join().
    void add_to(LoadResult& result) const {
        result.latency.merge(latency_);
        result.errors += errors_;
        if (result.times != nullptr) result.times->add(times_);
        if (result.first_error.empty()) result.first_error = first_error_;
    }

private:
    struct Worker {
        std::unique_ptr<std::byte[]> memory;
        core::Random random;
    };

    void run() {
        ObjectSession::Options options = options_.server;
        options.interrupt_fd = running_.stop_fd();
        if (options_.explain) options.times = &times_;
        auto session = ObjectSession::open(options);
        if (!session) {
            return running_.fail({.no_session = std::move(session.error())});
        }
        session_ = session->get();
        for (std::uint32_t i = 0; i < options_.depth; ++i) {
            Worker& worker = workers_.emplace_back(
                Worker{.memory = std::make_unique_for_overwrite<std::byte[]>(options_.size_bytes),
                       .random = core::Random(session_->entropy().number())});
            fill({worker.memory.get(), options_.size_bytes}, worker.random);
        }
        if (!running_.wait_for_all()) return;
        times_.count_from(running_.window().begin, running_.window().end);
        session_->run(run_workers());
    }
    Task<void> run_workers() {
        core::Gate gate;
        CancelledBy stop(session_->reactor(), running_.stop_fd(), cancel_);
        for (Worker& worker : workers_) {
            session_->reactor().spawn(
                gate, options_.op == ObjectOp::kCreate ? create_objects() : run_worker(&worker));
        }
        co_await gate.close(session_->reactor());  // Each worker ends with the window.
        co_await stop.close();
    }
    Task<void> run_worker(Worker* worker) {
        const LoadWindow& window = running_.window();
        const std::uint64_t positions = target_.size_bytes / options_.size_bytes;
        Instant begun = clock_.now();
        while (begun < window.end && !running_.stopped()) {
            const std::uint64_t offset = worker->random.below(positions) * options_.size_bytes;
            const bool is_write = options_.op == ObjectOp::kWrite ||
                                  (options_.op == ObjectOp::kMixed && worker->random.below(2) == 0);
            const std::span<std::byte> bytes(worker->memory.get(), options_.size_bytes);
            std::optional<Problem> problem;
            if (is_write) {
                auto written =
                    co_await session_->objects().write({.fid = target_.fid,
                                                        .offset = offset,
                                                        .from = bytes,
                                                        .durability = options_.durability},
                                                       wait());
                if (!written) problem = std::move(written.error());
            } else {
                auto got = co_await session_->objects().read(target_.fid, offset, bytes, wait());
                if (!got) problem = std::move(got.error());
            }
            begun = count(begun, std::move(problem));
        }
    }
    Task<void> create_objects() {
        std::vector<Target> made;
        Instant begun = clock_.now();
        while (begun < running_.window().end && !running_.stopped()) {
            std::string name = prefix_ + std::to_string(created_++);
            NewObject object{.name = name, .pool = options_.pool, .no_replace = true};
            // Not cancelled: an object may have been made whose name would not be known here.
            const ObjectClient::Wait until{.deadline =
                                               after(session_->reactor().now(), options_.timeout)};
            auto fid = co_await session_->objects().create(std::move(object), until);
            if (fid && options_.object.empty()) made.push_back({std::move(name), *fid});
            std::optional<Problem> problem;
            if (!fid) problem = std::move(fid.error());
            begun = count(begun, std::move(problem));
        }
        for (const Target& each : made) co_await remove_one(session_, each, options_.timeout);
    }
    ObjectClient::Wait wait() {
        return {.deadline = after(session_->reactor().now(), options_.timeout), .cancel = &cancel_};
    }
    // Counts an operation that ends now. Returns the time.
    Instant count(Instant begun, std::optional<Problem> problem) {
        const Instant now = clock_.now();
        const LoadWindow& window = running_.window();
        if (running_.stopped()) return now;
        if (!problem) {
            if (window.holds(begun, now)) latency_.record(now - begun);
        } else if (!object_load_may_pass(problem->status)) {
            running_.fail({.problem = std::move(*problem)});
        } else if (now >= window.begin) {
            if (errors_++ == 0) first_error_ = std::move(problem->words);
        }
        return now;
    }

    const ObjectLoadOptions& options_;
    const core::Clock& clock_;
    ObjectRunning& running_;
    const Target& target_;
    const std::string prefix_;   // The names of the created objects begin with it.
    std::uint64_t created_ = 0;  // Including failures.
    std::thread thread_;
    ObjectSession* session_ = nullptr;
    core::CancelSource cancel_;
    std::vector<Worker> workers_;
    core::Histogram latency_;
    std::uint64_t errors_ = 0;
    std::string first_error_;
    LoadTimes times_;
};

// The objects of a run. The main thread makes and removes them, with its own sessions.
class Targets {
public:
    Targets(const ObjectLoadOptions& options, ObjectSession& session)
        : options_(options), session_(session) {}

    // Ends early when `interrupt_fd` becomes readable.
    std::optional<Problem> prepare(int interrupt_fd) {
        return session_.run(prepared(interrupt_fd));
    }
    void remove() { session_.run(remove_made()); }
    const Target& of(std::uint32_t job) const { return all_[job % all_.size()]; }

private:
    Task<std::optional<Problem>> prepared(int interrupt_fd) {
        CancelledBy interrupt(session_.reactor(), interrupt_fd, cancel_);
        auto problem = co_await find_or_make();
        co_await interrupt.close();
        co_return problem;
    }
    Task<std::optional<Problem>> find_or_make() {
        std::array<char, 32> run{};
        std::snprintf(run.data(), run.size(), "-%016llx",
                      static_cast<unsigned long long>(session_.entropy().number()));
        const std::string own = "fopctl-bench";
        if (options_.op == ObjectOp::kCreate) {
            all_.push_back({(options_.object.empty() ? own : options_.object) + run.data()});
            co_return std::nullopt;
        }
        if (!options_.object.empty()) {
            std::string pool = options_.pool;
            std::string name = options_.object;
            auto found =
                co_await session_.objects().lookup(std::move(pool), std::move(name), wait());
            if (!found && found.error().status != fop::Status::kNotFound) {
                co_return std::move(found.error());
            }
            if (found) {
                all_.push_back({options_.object, found->fid, found->size_bytes});
                if (found->size_bytes >= options_.size_bytes) co_return std::nullopt;
                co_return Problem{.status = fop::Status::kTooLarge,
                                  .words = "it is smaller than --size"};
            }
            co_return co_await make(options_.object);
        }
        makes_own_ = true;
        for (std::uint32_t i = 0; i < options_.jobs; ++i) {
            std::string name = own + run.data() + "-" + std::to_string(i);
            auto problem = co_await make(std::move(name));
            if (problem) co_return problem;
        }
        co_return std::nullopt;
    }
    Task<std::optional<Problem>> make(std::string name) {
        Noise noise(options_.object_bytes, session_.entropy().number());
        Put put(session_.reactor(), session_.objects(), noise,
                {.patience = options_.timeout, .cancel = &cancel_});
        NewObject object{.name = name, .pool = options_.pool, .no_replace = true};
        auto fid = co_await put.run(std::move(object));
        if (!fid) co_return std::move(fid.error());
        all_.push_back({std::move(name), *fid, options_.object_bytes});
        co_return std::nullopt;
    }
    Task<void> remove_made() {
        if (!makes_own_) co_return;
        for (const Target& each : all_) co_await remove_one(&session_, each, options_.timeout);
    }
    ObjectClient::Wait wait() {
        return {.deadline = after(session_.clock().now(), options_.timeout), .cancel = &cancel_};
    }

    const ObjectLoadOptions& options_;
    ObjectSession& session_;
    core::CancelSource cancel_;
    std::vector<Target> all_;
    bool makes_own_ = false;
};

}  // namespace

std::expected<std::unique_ptr<LoadResult>, LoadFailure> run_object_load(
    const ObjectLoadOptions& options, Interrupts& interrupts) {
    const core::PosixClock clock;
    const auto is_interrupted = [&] { return !interrupts.wait(-1, Duration::zero()); };
    auto result = std::make_unique<LoadResult>();
    ObjectSession::Options server = options.server;
    server.interrupt_fd = interrupts.fd();
    auto session = ObjectSession::open(server);
    if (!session) {
        result->interrupted = is_interrupted();
        if (result->interrupted) return result;
        return std::unexpected(LoadFailure{.no_session = std::move(session.error())});
    }
    Targets targets(options, **session);
    std::optional<LoadFailure> failure;
    auto problem = targets.prepare(interrupts.fd());
    result->interrupted = is_interrupted();
    if (problem) {
        failure = LoadFailure{.problem = *std::move(problem)};
    } else if (!result->interrupted) {
        if (options.explain) result->times = std::make_unique<LoadTimes>(clock);
        ObjectRunning running(options, clock);
        std::vector<std::unique_ptr<ObjectJob>> jobs;
        for (std::uint32_t i = 0; i < options.jobs; ++i) {
            jobs.push_back(std::make_unique<ObjectJob>(options, clock, running, targets.of(i), i));
        }
        result->interrupted = !interrupts.wait(running.fd(), kNever - clock.now());
        const Duration over = running.stop();
        result->window = result->interrupted ? over : options.window;
        for (const auto& job : jobs) job->join();
        failure = running.take_failure();
        for (const auto& job : jobs) job->add_to(*result);
    }
    targets.remove();
    if (failure && !result->interrupted) return std::unexpected(*std::move(failure));
    return result;
}

}  // namespace fopd::client
