#include "objects/background_device.h"

#include "io_sched/awaited_request.h"

namespace fopd::objects {

namespace {

// Whether the scheduler stopped serving the disk before the operation began.
bool was_given_back(const Result<void>& result) {
    if (result) return false;
    const Errc code = result.error().code;
    return code == Errc::kNotFound || code == Errc::kClosed;
}

}  // namespace

Task<Result<void>> BackgroundDevice::schedule(io_sched::IoType type, core::Buffer buffer,
                                              std::uint64_t offset, core::WaitOptions wait) {
    io_sched::AwaitedRequest request({.reactor = parts_.reactor, .main = parts_.scheduler}, type,
                                     {.medium = parts_.medium, .buffer = buffer, .offset = offset},
                                     {.wait = wait, .priority = io_sched::IoPriority::kBackground});
    co_return co_await request;
}

bool BackgroundDevice::is_scheduled() const {
    return parts_.scheduler.device(parts_.medium) != nullptr;
}

Task<Result<void>> BackgroundDevice::read(core::Buffer into, std::uint64_t offset,
                                          core::WaitOptions wait) {
    if (is_scheduled()) {
        const auto read = co_await schedule(io_sched::IoType::kRead, into, offset, wait);
        if (!was_given_back(read)) co_return read;
    }
    co_return co_await parts_.device.read(into, offset, wait);
}

Task<Result<void>> BackgroundDevice::write(core::Buffer from, std::uint64_t offset) {
    if (is_scheduled()) {
        const auto written = co_await schedule(io_sched::IoType::kWrite, from, offset);
        if (!was_given_back(written)) co_return written;
    }
    co_return co_await parts_.device.write(from, offset);
}

Task<Result<void>> BackgroundDevice::discard(std::uint64_t offset, std::uint64_t size_bytes) {
    if (is_scheduled()) {
        const core::Buffer no_memory{.size_bytes = size_bytes};
        const auto discarded = co_await schedule(io_sched::IoType::kFormat, no_memory, offset);
        if (!was_given_back(discarded)) co_return discarded;
    }
    co_return co_await parts_.device.discard(offset, size_bytes);
}

}  // namespace fopd::objects
