#include "objects/background_device.h"

#include <coroutine>
#include <utility>

namespace fopd::objects {

// A background request that a coroutine awaits.
class BackgroundDevice::Request final : public io_sched::IoRequest {
public:
    Request(const Parts& disk, io_sched::IoType of_type, core::Buffer buffer, std::uint64_t offset)
        : IoRequest(&on_complete),
          reactor_(disk.reactor),
          scheduler_(disk.scheduler),
          part_{.medium = disk.medium, .buffer = buffer, .offset = offset} {
        type = of_type;
        priority = io_sched::IoPriority::kBackground;
        parts = std::span(&part_, 1);
    }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
        waiter_ = handle;
        scheduler_.push(*this);  // Never completes within this call.
    }
    Result<void> await_resume() { return std::move(result); }

    // Whether the scheduler stopped serving the disk before the operation began.
    static bool was_given_back(const Result<void>& result) {
        if (result) return false;
        const Errc code = result.error().code;
        return code == Errc::kNotFound || code == Errc::kClosed;
    }

private:
    static void on_complete(IoRequest& completed) {
        auto& request = static_cast<Request&>(completed);
        request.reactor_.schedule(request.waiter_);
    }

    core::Reactor& reactor_;
    io_sched::MainScheduler& scheduler_;
    io_sched::IoPart part_;
    std::coroutine_handle<> waiter_;
};

bool BackgroundDevice::is_scheduled() const {
    return !parts_.scheduler.closed() && parts_.scheduler.device(parts_.medium) != nullptr;
}

Task<Result<void>> BackgroundDevice::write(core::Buffer from, std::uint64_t offset) {
    if (is_scheduled()) {
        Request request(parts_, io_sched::IoType::kWrite, from, offset);
        const Result<void> written = co_await request;
        if (!Request::was_given_back(written)) co_return written;
    }
    co_return co_await parts_.device.write(from, offset);
}

Task<Result<void>> BackgroundDevice::discard(std::uint64_t offset, std::uint64_t size_bytes) {
    if (is_scheduled()) {
        const core::Buffer no_memory{.size_bytes = size_bytes};
        Request request(parts_, io_sched::IoType::kFormat, no_memory, offset);
        const Result<void> discarded = co_await request;
        if (!Request::was_given_back(discarded)) co_return discarded;
    }
    co_return co_await parts_.device.discard(offset, size_bytes);
}

}  // namespace fopd::objects
