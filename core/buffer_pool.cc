#include "core/buffer_pool.h"

#include <algorithm>
#include <cerrno>

#include <sys/mman.h>

namespace fopd::core {

namespace {

// The most that the kernel registers as one region; a multiple of the buffer size.
constexpr std::size_t kRegionBytes = 1UL << 30;
static_assert(kRegionBytes % kBufferBytes == 0);

}  // namespace

BufferPool::~BufferPool() {
    close();
}

Result<void> BufferPool::open(std::size_t size_bytes) {
    ENSURE(memory_.empty());
    const std::size_t count = std::max<std::size_t>(size_bytes / kBufferBytes, 1);
    const std::size_t mapped_bytes = count * kBufferBytes;
    // In huge pages if the size allows: pinning 64 MiB of small pages takes a third of a second.
    void* const mapped = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return std::unexpected(os_error(errno, "map buffers"));
    ::madvise(mapped, mapped_bytes, MADV_HUGEPAGE);  // Only advice: without it, mapping is slower.
    memory_ = {static_cast<std::byte*>(mapped), mapped_bytes};

    if (const auto attached = attach_all(); !attached) registration_error_ = attached.error();
    free_buffers_.reserve(count);
    for (std::size_t i = count; i > 0; --i) {
        const std::size_t offset = (i - 1) * kBufferBytes;
        free_buffers_.push_back(
            Buffer{.data = memory_.data() + offset,
                   .size_bytes = kBufferBytes,
                   .region = registered() ? regions_[offset / kRegionBytes].region : -1});
    }
    total_.set(count);
    free_.set(count);
    return {};
}

Result<void> BufferPool::attach_all() {
    for (std::size_t offset = 0; offset < memory_.size(); offset += kRegionBytes) {
        const std::size_t size = std::min(kRegionBytes, memory_.size() - offset);
        const auto attached = reactor_.attach_region(memory_.subspan(offset, size));
        if (!attached) {
            detach_all();
            return std::unexpected(attached.error());
        }
        regions_.push_back(*attached);
    }
    return {};
}

void BufferPool::detach_all() {
    for (const Buffer& region : regions_) reactor_.detach_region(region);
    regions_.clear();
}

void BufferPool::close() {
    if (memory_.empty()) return;
    ENSURE(free_buffers_.size() == total_.get());
    detach_all();
    ::munmap(memory_.data(), memory_.size());
    memory_ = {};
    free_buffers_.clear();
    total_.set(0);
    free_.set(0);
}

Task<Result<BufferPool::Loan>> BufferPool::borrow(WaitOptions options) {
    if (free_buffers_.size() == promised_) {
        const auto woken = co_await waiters_.wait(options);
        if (!woken) co_return std::unexpected(woken.error());
        --promised_;
    }
    const Buffer buffer = free_buffers_.back();
    free_buffers_.pop_back();
    free_.set(free_buffers_.size());
    co_return Loan(this, buffer);
}

void BufferPool::give_back(const Buffer& buffer) {
    free_buffers_.push_back(buffer);
    free_.set(free_buffers_.size());
    // The waiter runs in a later turn; new callers wait behind it.
    if (waiters_.wake_one()) ++promised_;
}

}  // namespace fopd::core
