#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/counter.h"
#include "core/reactor.h"
#include "core/wait_queue.h"

namespace fopd::core {

// Size of every buffer in a pool: one chunk of a bulk transfer.
inline constexpr std::size_t kBufferBytes = 256UL << 10;

// The I/O memory of one locality: page-aligned buffers of kBufferBytes, mapped once, and registered
// with the io_uring if the memory lock limit allows. Used on one reactor.
class BufferPool {
public:
    // A borrowed buffer; the destructor returns it to the pool.
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

    // Maps `size_bytes`, rounded down to whole buffers but at least one. kNoSpace: no memory.
    // Either all of the memory is registered with the ring or none of it; open() succeeds in both
    // cases. registered() tells which, and registration_error() why registration failed.
    Result<void> open(std::size_t size_bytes);
    // REQUIRES: no buffer is on loan.
    void close();

    // Waits for a free buffer; callers are served in FIFO order. kTimedOut or kCancelled when the
    // wait ends first.
    Task<Result<Loan>> borrow(WaitOptions options);

    bool is_waited_for() const { return !waiters_.empty(); }

    // All of the pool's memory, free or on loan.
    std::span<std::byte> memory() const { return memory_; }
    bool registered() const { return !regions_.empty(); }
    const Error& registration_error() const { return registration_error_; }

    // Thread-safe: the number of buffers, and of free ones.
    std::uint64_t total_count() const { return total_.get(); }
    std::uint64_t free_count() const { return free_.get(); }

private:
    Result<void> attach_all();
    void detach_all();
    void give_back(const Buffer& buffer);

    Reactor& reactor_;
    WaitQueue waiters_;
    std::span<std::byte> memory_;
    std::vector<Buffer> regions_;  // One registration covers at most 1 GiB.
    Error registration_error_{.code = Errc::kUnsupported};
    std::vector<Buffer> free_buffers_;  // Free buffers, used in LIFO order.
    std::size_t promised_ = 0;          // Free buffers reserved for waiters that were woken.
    Counter total_;
    Counter free_;
};

}  // namespace fopd::core
