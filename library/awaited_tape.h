#pragma once

#include <coroutine>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/reactor.h"
#include "io_sched/main_scheduler.h"
#include "library/drive_unit.h"

namespace fopd::library {

// A request for drives, for a coroutine: `co_await` pushes it and gives its result. kClosed: the
// scheduler is closed.
class AwaitedTape final : JobRequest, core::CancelHook {
public:
    // Both arguments outlive this object.
    struct Scheduler {
        core::Reactor& reactor;
        io_sched::MainScheduler& main;
    };
    struct Options {
        io_sched::IoType type = io_sched::IoType::kRead;
        io_sched::IoPriority priority = io_sched::IoPriority::kForeground;
        std::uint32_t pool = 0;
        std::uint64_t collection = 0;
        core::CancelSource* cancel = nullptr;  // Cancels the wait for a drive.
    };
    AwaitedTape(const Scheduler& scheduler, TapeJob& job, const Options& options,
                std::vector<io_sched::IoPart> its_parts)
        : JobRequest(&on_complete, job),
          CancelHook(&on_cancel),
          scheduler_(scheduler),
          cancel_(options.cancel),
          parts_(std::move(its_parts)) {
        type = options.type;
        priority = options.priority;
        pool = options.pool;
        collection = options.collection;
        parts = parts_;
        const bool is_cancelled = cancel_ != nullptr && cancel_->cancelled();
        result = std::unexpected(Error{.code = is_cancelled ? Errc::kCancelled : Errc::kClosed,
                                       .context = "the library stops"});
    }

    bool await_ready() const {
        return scheduler_.main.closed() || (cancel_ != nullptr && cancel_->cancelled());
    }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        if (cancel_ != nullptr) cancel_->add(*this);
        scheduler_.main.push(*this);  // Never completes within this call.
    }
    [[nodiscard]] Result<void> await_resume() const { return result; }
    // Whether a part of the request waits for a drive or a medium.
    using TapeRequest::waiting;
    // The media of the request. For a write: the cartridges that the scheduler has chosen last.
    const std::vector<io_sched::IoPart>& where() const { return parts_; }

private:
    static void on_complete(io_sched::IoRequest& request) {
        auto& self = static_cast<AwaitedTape&>(request);
        self.CancelHook::unlink();
        self.scheduler_.reactor.schedule(self.handle_);
    }
    static void on_cancel(core::CancelHook& hook) {
        auto& self = static_cast<AwaitedTape&>(hook);
        self.scheduler_.main.cancel(self);
    }

    const Scheduler scheduler_;
    core::CancelSource* const cancel_;
    std::vector<io_sched::IoPart> parts_;
    std::coroutine_handle<> handle_;
};

}  // namespace fopd::library
