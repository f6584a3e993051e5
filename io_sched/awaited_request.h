#pragma once

#include <coroutine>
#include <span>

#include "core/reactor.h"
#include "io_sched/disk.h"
#include "io_sched/main_scheduler.h"

namespace fopd::io_sched {

// A request of one part to a disk, for a coroutine: `co_await` pushes it and gives its result.
// kClosed: the scheduler is closed.
class AwaitedRequest final : DiskRequest {
public:
    // The reactor of the request and the scheduler of its disk. Both outlive the request.
    struct Scheduler {
        core::Reactor& reactor;
        MainScheduler& main;
    };
    struct Options {
        core::WaitOptions wait{};
        IoPriority priority = IoPriority::kForeground;
    };
    AwaitedRequest(const Scheduler& scheduler, IoType of_type, const DiskPart& part,
                   const Options& options)
        : DiskRequest(&on_complete),
          scheduler_(scheduler),
          buffer_(part.buffer),
          part_{
              .medium = part.medium, .offset = part.offset, .size_bytes = part.buffer.size_bytes} {
        type = of_type;
        priority = options.priority;
        wait = options.wait;
        parts = std::span(&part_, 1);
        buffers = std::span(&buffer_, 1);
        result = std::unexpected(Error{.code = Errc::kClosed, .context = "the disks are stopping"});
    }

    bool await_ready() const { return scheduler_.main.closed(); }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        scheduler_.main.push(*this);  // Never completes within this call.
    }
    [[nodiscard]] Result<void> await_resume() const { return result; }

private:
    static void on_complete(IoRequest& request) {
        auto& self = static_cast<AwaitedRequest&>(request);
        self.scheduler_.reactor.schedule(self.handle_);
    }

    const Scheduler scheduler_;
    const core::Buffer buffer_;
    IoPart part_;
    std::coroutine_handle<> handle_;
};

}  // namespace fopd::io_sched
