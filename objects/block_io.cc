#include "objects/block_io.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::objects {

std::uint32_t zero_block_checksum() {
    static constexpr std::array<std::byte, kBlock> kZeros{};
    static const std::uint32_t kChecksum = core::crc32c(kZeros);
    return kChecksum;
}

BlockIo::BlockIo() {
    for (Request& each : requests_) each.owner = this;
}

void BlockIo::read(core::Buffer into, std::uint64_t block, core::WaitOptions wait) {
    push(io_sched::IoType::kRead, into, block, wait);
}

void BlockIo::write(core::Buffer from, std::uint64_t block, core::WaitOptions wait) {
    push(io_sched::IoType::kWrite, from, block, wait);
}

void BlockIo::push(io_sched::IoType type, core::Buffer buffer, std::uint64_t block,
                   core::WaitOptions wait) {
    ENSURE(!full());
    Request& request = requests_[count_++];
    request.type = type;
    request.priority = disk_.priority;
    request.buffer = buffer;
    request.buffers = std::span(&request.buffer, 1);
    request.part = {.medium = disk_.medium,
                    .offset = block * fop::kBlockBytes,
                    .size_bytes = buffer.size_bytes};
    request.parts = std::span(&request.part, 1);
    request.wait = wait;
    if (disk_.scheduler->closed()) {
        request.result =
            std::unexpected(Error{.code = Errc::kClosed, .context = "the disks are stopping"});
        return;
    }
    ++running_;
    disk_.scheduler->push(request);
}

void BlockIo::on_complete(io_sched::IoRequest& request) {
    BlockIo& io = *static_cast<Request&>(request).owner;
    --io.running_;
    if (io.running_ > 0 || !io.waiter_) return;
    io.disk_.reactor->schedule(std::exchange(io.waiter_, nullptr));
}

void BlockIo::Awaiter::await_suspend(std::coroutine_handle<> handle) {
    io_.waiter_ = handle;
    if (io_.observer_ == nullptr) return;
    told_ = io_.observer_;
    told_->disk_wait_begins(io_.disk_.reactor->now());
}

void BlockIo::Awaiter::end_wait() {
    if (told_ == nullptr) return;
    std::exchange(told_, nullptr)->disk_wait_ends(io_.disk_.reactor->now());
}

Result<void> BlockIo::Awaiter::await_resume() {
    end_wait();
    Result<void> first{};
    Duration waited{};
    for (std::size_t i = 0; i < io_.count_; ++i) {
        const Request& request = io_.requests_[i];
        if (first) first = request.result;
        waited = std::max(waited, request.waited());
    }
    io_.waited_ += waited;
    io_.count_ = 0;
    return first;
}

}  // namespace fopd::objects
