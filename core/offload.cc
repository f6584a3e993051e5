#include "core/offload.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

#include "core/ensure.h"

namespace fopd::core {

namespace {

class ThreadOffload final : public Offload {
public:
    explicit ThreadOffload(OffloadOptions options) : options_(std::move(options)) {
        ENSURE(options_.thread_count > 0);
    }

    // After a failure, the threads that did start are kept until destruction.
    Result<void> grow(unsigned thread_count) override {
        try {
            while (threads_.size() < thread_count) {
                threads_.emplace_back([this]() noexcept { work(); });
                pthread_setname_np(threads_.back().native_handle(),
                                   options_.name.substr(0, 15).c_str());
            }
        } catch (const std::system_error& problem) {
            return std::unexpected(os_error(problem.code().value(), "start a thread"));
        }
        return {};
    }

    ~ThreadOffload() override {
        {
            const std::lock_guard lock(mutex_);
            ENSURE(first_ == nullptr);
            stopping_ = true;
        }
        work_to_do_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    // Takes a mutex for a few instructions: blocking calls are rare and slow, and the threads hold
    // the mutex equally briefly.
    bool submit(Job& job) override {
        {
            const std::lock_guard lock(mutex_);
            if (queued_ == options_.queue_max) return false;
            ++queued_;
            job.next = nullptr;
            (first_ == nullptr ? first_ : last_->next) = &job;
            last_ = &job;
        }
        work_to_do_.notify_one();
        return true;
    }

private:
    void work() {
        for (;;) {
            Job* const job = take();
            if (job == nullptr) return;
            job->run(*job);
            job->home.post(job->done);
        }
    }

    Job* take() {
        std::unique_lock lock(mutex_);
        work_to_do_.wait(lock, [this] { return first_ != nullptr || stopping_; });
        if (first_ == nullptr) return nullptr;
        Job* const job = first_;
        first_ = job->next;
        --queued_;
        return job;
    }

    const OffloadOptions options_;
    std::mutex mutex_;
    std::condition_variable work_to_do_;
    Job* first_ = nullptr;
    Job* last_ = nullptr;
    std::size_t queued_ = 0;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Offload>> make_thread_offload(OffloadOptions options) {
    const unsigned thread_count = options.thread_count;
    auto offload = std::make_unique<ThreadOffload>(std::move(options));
    const auto started = offload->grow(thread_count);
    if (!started) return std::unexpected(started.error());
    return offload;
}

}  // namespace fopd::core
