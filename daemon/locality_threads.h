#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

struct LocalityThreadsOptions {
    std::uint32_t count = 1;
    Duration spin{0};  // Only if a core is left for all other threads.
    bool sqpoll = false;
};

// The localities' threads in the real world, each pinned to one of the cores this process may use,
// each with an io_uring reactor.
class LocalityThreads {
public:
    static Started<std::unique_ptr<LocalityThreads>> start(LocalityThreadsOptions options,
                                                           core::Reactor& control,
                                                           const core::Clock& clock,
                                                           core::EventSink& events);
    // Waits for the threads. REQUIRES: stop() returned true, or was never called.
    ~LocalityThreads();
    LocalityThreads(const LocalityThreads&) = delete;
    LocalityThreads& operator=(const LocalityThreads&) = delete;

    std::vector<core::Reactor*> reactors();
    // The core of each thread, or -1 where the system refused to pin it.
    const std::vector<int>& cores() const { return cores_; }
    // CPU time the thread has used. From any thread.
    Duration cpu_time(std::size_t index) const;

    // On the control reactor: ends every loop. False when one has not ended by `deadline`; its
    // thread cannot be joined then, and the process can only exit.
    Task<bool> stop(Instant deadline);

private:
    class Thread;

    explicit LocalityThreads(core::Reactor& control);

    core::Reactor& control_;
    core::WaitQueue thread_ended_;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<int> cores_;
};

// The cores this process may run on.
std::vector<int> usable_cores();

}  // namespace fopd::daemon
