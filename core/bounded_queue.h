#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/wait_queue.h"

namespace fopd::core {

// A FIFO queue of at most `count_max` items, for coroutines of one reactor. Pushing to a full queue
// fails, and the caller decides what to do. After close(), the remaining items can still be popped;
// then every pop() fails with kClosed.
template <typename T>
class BoundedQueue {
public:
    BoundedQueue(Reactor& reactor, std::size_t count_max) : poppers_(reactor), slots_(count_max) {
        ENSURE(count_max > 0);
    }

    std::size_t count() const { return count_; }
    std::size_t count_max() const { return slots_.size(); }
    bool full() const { return count_ == slots_.size(); }
    bool closed() const { return closed_; }

    // Returns false, and leaves `item` unchanged, when the queue is full or closed.
    [[nodiscard]] bool try_push(T&& item) {
        if (full() || closed_) return false;
        slots_[(head_ + count_) % slots_.size()] = std::move(item);
        ++count_;
        poppers_.wake_one();
        return true;
    }
    [[nodiscard]] bool try_push(const T& item) {
        T copy = item;
        return try_push(std::move(copy));
    }

    std::optional<T> try_pop() {
        if (count_ == 0) return std::nullopt;
        std::optional<T> item = std::exchange(slots_[head_], std::nullopt);
        head_ = (head_ + 1) % slots_.size();
        --count_;
        return item;
    }

    // Waits for the oldest item. kClosed: the queue is closed and empty. Otherwise kTimedOut or
    // kCancelled, from `options`.
    Task<Result<T>> pop(WaitOptions options) {
        for (;;) {
            if (std::optional<T> item = try_pop(); item.has_value()) co_return std::move(*item);
            if (closed_)
                co_return std::unexpected(Error{.code = Errc::kClosed, .context = "queue"});
            const auto woken = co_await poppers_.wait(options);
            if (!woken && count_ == 0) co_return std::unexpected(woken.error());
        }
    }

    void close() {
        closed_ = true;
        poppers_.wake_all();
    }

private:
    WaitQueue poppers_;
    std::vector<std::optional<T>> slots_;
    std::size_t head_ = 0;
    std::size_t count_ = 0;
    bool closed_ = false;
};

}  // namespace fopd::core
