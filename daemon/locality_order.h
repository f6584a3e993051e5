#pragma once

#include <functional>
#include <utility>

#include "core/gate.h"
#include "core/reactor.h"
#include "core/round_trip.h"
#include "core/task.h"
#include "core/wait_queue.h"

namespace fopd::daemon {

// A task that the control reactor has a locality carry out. The control reactor never blocks on it:
// a locality that does not answer keeps the order.
class LocalityOrder final : public core::RoundTrip {
public:
    using Job = std::function<Task<void>()>;

    // The task runs on `locality` inside `gate`, which belongs to that reactor. `ended` is woken on
    // `control` when the task has ended. All of them outlive the order.
    LocalityOrder(core::Reactor& control, core::Reactor& locality, core::Gate& gate,
                  core::WaitQueue& ended)
        : RoundTrip(control, locality), gate_(gate), ended_(ended) {}

    // `job` is called on the locality and makes the task. REQUIRES: not under_way().
    void send(Job job) {
        job_ = std::move(job);
        depart();
    }
    // Returns when the task has ended or the deadline has passed; under_way() tells which.
    Task<void> wait(Instant deadline) {
        const core::WaitOptions options{.deadline = deadline};
        while (under_way()) {
            const auto woken = co_await ended_.wait(options);
            if (!woken) co_return;
        }
    }

private:
    void arrive() override { there().spawn(gate_, carry_out(this)); }
    void come_back() override { ended_.wake_all(); }
    static Task<void> carry_out(LocalityOrder* self) {
        Task<void> task = self->job_();
        co_await std::move(task);
        self->go_back();
    }

    core::Gate& gate_;
    core::WaitQueue& ended_;
    Job job_;  // Owned by the locality until the order is back.
};

}  // namespace fopd::daemon
