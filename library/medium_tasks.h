#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "core/cancel.h"
#include "core/ensure.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "library/cartridge.h"
#include "library/medium_work.h"

namespace fopd::library {

// A repack, scrub or rescue of a cartridge. Kept after its end, so that administrators can ask for
// its result.
struct MediumTask {
    CartridgeId id = 0;
    std::uint64_t number = 0;  // Unique among the tasks of a kind.
    MediumWork work{};
    core::CancelSource cancel{};
    bool runs = true;  // The task has not ended. A task that waits for its turn counts as running.
    bool has_turn = false;  // Set by run_in_turn().
};

// The latest task of one kind on each cartridge. T derives from MediumTask.
template <typename T>
class MediumTasks {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        core::Gate& gate;  // Entered by run_in_turn().
        const core::CancelSource& stop;
        core::WaitQueue& changed;  // Woken after the end of a task.
    };
    explicit MediumTasks(const Parts& parts) : parts_(parts) {}

    // The latest task on the cartridge; null: there was none since the start of the node.
    T* find(CartridgeId id) const {
        const auto found = tasks_.find(id);
        return found == tasks_.end() ? nullptr : found->second.get();
    }
    bool is_running(CartridgeId id) const {
        const T* const task = find(id);
        return task != nullptr && task->runs;
    }
    // Adds a task, and forgets the earlier task on the cartridge. REQUIRES: the earlier task does
    // not run.
    T& add(CartridgeId id) {
        ENSURE(!is_running(id));
        auto task = std::make_unique<T>();
        task->id = id;
        task->number = ++added_;
        task->work.began_at = parts_.reactor.now();
        T& added = *task;
        tasks_[id] = std::move(task);
        return added;
    }
    void cancel_all() {
        for (const auto& [id, task] : tasks_) task->cancel.cancel();
    }
    template <typename Condition>
    bool any_of(Condition condition) const {
        return std::ranges::any_of(tasks_,
                                   [&](const auto& each) { return condition(*each.second); });
    }

    // Starts to run the waiting tasks in the background, one at a time, until none waits or the
    // node stops. Does nothing if they run already.
    template <typename Owner>
    void run_in_turn(Owner* owner, Task<void> (Owner::*run)(T*)) {
        if (gives_turns_ || next() == nullptr || parts_.gate.closed()) return;
        gives_turns_ = true;
        parts_.reactor.spawn(parts_.gate, give_turns(owner, run));
    }

    // Waits until the task that runs now on the cartridge has ended; another task may have begun
    // when it returns. REQUIRES: the task was cancelled.
    Task<void> until_ended(CartridgeId id) {
        const std::uint64_t number = is_running(id) ? find(id)->number : 0;
        while (is_running(id) && find(id)->number == number) {
            // No deadline: the task ends soon, because its waits were cancelled.
            [[maybe_unused]] const auto woken = co_await parts_.changed.wait({});
        }
    }

private:
    T* next() const {
        for (const auto& [id, task] : tasks_) {
            if (task->runs && !task->has_turn && !task->cancel.cancelled()) return task.get();
        }
        return nullptr;
    }

    template <typename Owner>
    Task<void> give_turns(Owner* owner, Task<void> (Owner::*run)(T*)) {
        for (T* task = next(); task != nullptr && !parts_.stop.cancelled(); task = next()) {
            task->has_turn = true;
            co_await (owner->*run)(task);
        }
        gives_turns_ = false;
    }

    const Parts parts_;
    std::map<CartridgeId, std::unique_ptr<T>> tasks_;
    std::uint64_t added_ = 0;
    bool gives_turns_ = false;
};

}  // namespace fopd::library
