#pragma once

#include <coroutine>
#include <cstdint>
#include <span>

#include "core/reactor.h"
#include "io_sched/main_scheduler.h"

namespace fopd::io_sched::testing {

struct IoOptions {
    core::WaitOptions wait{};
    IoPriority priority = IoPriority::kForeground;
};

// Requests of one part, for coroutines: `co_await io.read(…)` gives a Result<void>; kClosed when
// the scheduler is closed.
class AwaitedIo {
public:
    class Awaiter final : IoRequest {
    public:
        Awaiter(AwaitedIo& io, IoType what, const IoPart& part, const IoOptions& options)
            : IoRequest(&on_complete), io_(io), part_(part) {
            type = what;
            priority = options.priority;
            wait = options.wait;
            parts = std::span(&part_, 1);
            result = std::unexpected(Error{.code = Errc::kClosed});
        }
        bool await_ready() const { return io_.scheduler_.closed(); }
        void await_suspend(std::coroutine_handle<> handle) {
            handle_ = handle;
            io_.scheduler_.push(*this);
        }
        [[nodiscard]] Result<void> await_resume() const { return result; }

    private:
        static void on_complete(IoRequest& request) {
            auto& self = static_cast<Awaiter&>(request);
            self.io_.reactor_.schedule(self.handle_);
        }

        AwaitedIo& io_;
        IoPart part_;
        std::coroutine_handle<> handle_;
    };

    AwaitedIo(core::Reactor& reactor, MainScheduler& scheduler)
        : reactor_(reactor), scheduler_(scheduler) {}

    Awaiter read(MediumId medium, core::Buffer into, std::uint64_t offset, IoOptions options = {}) {
        return {
            *this, IoType::kRead, {.medium = medium, .buffer = into, .offset = offset}, options};
    }
    Awaiter write(MediumId medium, core::Buffer from, std::uint64_t offset,
                  IoOptions options = {}) {
        return {
            *this, IoType::kWrite, {.medium = medium, .buffer = from, .offset = offset}, options};
    }
    Awaiter format(MediumId medium, std::uint64_t offset, std::uint64_t size_bytes,
                   IoOptions options = {}) {
        const core::Buffer range{.size_bytes = size_bytes};
        return {
            *this, IoType::kFormat, {.medium = medium, .buffer = range, .offset = offset}, options};
    }
    MainScheduler& scheduler() { return scheduler_; }

private:
    core::Reactor& reactor_;
    MainScheduler& scheduler_;
};

}  // namespace fopd::io_sched::testing
