#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/gate.h"
#include "core/reactor.h"
#include "core/remote_task.h"
#include "core/result.h"
#include "core/task.h"
#include "library/staging_disks.h"

namespace fopd::library {

// Calls the staging disks of all localities for the library.
class HomeDoors {
public:
    struct Door {
        StagingDisks* disks = nullptr;
        core::Reactor* reactor = nullptr;
        core::Gate* gate = nullptr;  // The gate of the stores' duties.
    };
    // All outlive it.
    HomeDoors(core::Reactor& here, std::vector<Door> doors)
        : here_(here), doors_(std::move(doors)) {}

    std::uint32_t count() const { return static_cast<std::uint32_t>(doors_.size()); }

    // Runs the task `job(StagingDisks&)` at a locality, and returns its Result<Value>. kClosed: the
    // stores there are stopping. The caller keeps `job` alive until the await returns.
    template <typename Value, typename Job>
    Task<Result<Value>> run_at(std::uint32_t locality, Job* job) {
        const Door door = doors_[locality];
        auto there = [job, door] { return (*job)(*door.disks); };
        auto done =
            co_await core::run_task_on<Result<Value>>(here_, *door.reactor, *door.gate, there);
        if (!done) {
            co_return std::unexpected(
                Error{.code = Errc::kClosed, .context = "the disks are stopping"});
        }
        co_return std::move(*done);
    }

    // Calls the function `job(StagingDisks&)` at a locality, which returns at once.
    template <typename Value, typename Job>
    Task<Result<Value>> call_at(std::uint32_t locality, Job* job) {
        auto task = [job](StagingDisks& disks) { return call<Value>(&disks, job); };
        co_return co_await run_at<Value>(locality, &task);
    }

private:
    template <typename Value, typename Job>
    static Task<Result<Value>> call(StagingDisks* disks, Job* job) {
        if constexpr (std::is_void_v<Value>) {
            (*job)(*disks);
            co_return Result<void>{};
        } else {
            co_return (*job)(*disks);
        }
    }

    core::Reactor& here_;
    const std::vector<Door> doors_;
};

}  // namespace fopd::library
