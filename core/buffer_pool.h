#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/counter.h"
#include "core/reactor.h"
#include "core/wait_queue.h"

namespace fopd::core {

// What every piece of a pool measures: one piece of a bulk transfer.
inline constexpr std::size_t kBufferBytes = 256UL << 10;

// The memory one locality does I/O with: page-aligned pieces of one size, mapped once, registered
// with the ring where the memory lock limit allows. Lives on its reactor.
class BufferPool {
public:
    // A piece on loan; it goes back on destruction.
    class Loan {
    public:
        Loan(Loan&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), buffer_(other.buffer_) {}
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;
        Loan& operator=(Loan&&) = delete;
        ~Loan() {
            if (pool_ != nullptr) pool_->give_back(buffer_);
        }
        const Buffer& buffer() const { return buffer_; }

    private:
        friend BufferPool;
        Loan(BufferPool* pool, const Buffer& buffer) : pool_(pool), buffer_(buffer) {}
        BufferPool* pool_;
        Buffer buffer_;
    };

    explicit BufferPool(Reactor& reactor) : reactor_(reactor), waiters_(reactor) {}
    ~BufferPool();
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;

    // Maps `size_bytes`, rounded down to whole pieces, at least one. kNoSpace when there is no
    // memory. Not being registered, all of it or none, is no failure: registered() tells, and
    // registration_error() why.
    Result<void> open(std::size_t size_bytes);
    // Requires: nothing is on loan.
    void close();

    // Waits for a free piece, in the order of asking; kTimedOut or kCancelled when there is none in
    // time.
    Task<Result<Loan>> borrow(WaitOptions options);

    bool is_waited_for() const { return !waiters_.empty(); }

    // All of it, free or not.
    std::span<std::byte> memory() const { return memory_; }
    bool registered() const { return !regions_.empty(); }
    const Error& registration_error() const { return registration_error_; }

    // Both from any thread.
    std::uint64_t total_count() const { return total_.get(); }
    std::uint64_t free_count() const { return free_.get(); }

private:
    Result<void> attach_all();
    void detach_all();
    void give_back(const Buffer& buffer);

    Reactor& reactor_;
    WaitQueue waiters_;
    std::span<std::byte> memory_;
    std::vector<Buffer> regions_;  // The kernel takes 1 GiB at a time.
    Error registration_error_{.code = Errc::kUnsupported};
    std::vector<Buffer> pieces_;  // The free ones; the last given back is the first to go.
    std::size_t promised_ = 0;    // Of the free ones, to those who were woken.
    Counter total_;
    Counter free_;
};

}  // namespace fopd::core
