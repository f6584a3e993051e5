#pragma once

#include <algorithm>
#include <cstdint>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"

namespace fopd::library {

// The recalls that wait for room on a disk. When room may have become free, they try one after the
// other, the oldest first: a smaller object may fit where a larger one does not. So they do not all
// search the disk at the same time when a little room becomes free. Each recall also tries by
// itself after a pause. Lives on one reactor.
class RoomQueue {
public:
    explicit RoomQueue(core::Reactor& reactor) : waiting_(reactor) {}

    // How often room_came() was called.
    std::uint64_t changes() const { return changes_; }
    // Called when room on the disk may have become free.
    void room_came() {
        ++changes_;
        begin_round();
    }
    // Called when a woken recall has found room: others may find room, too.
    void found_room() { begin_round(); }
    // Called when a woken recall has found no room, or needs none any more.
    void let_next_try() {
        if (tries_ == 0) return;
        --tries_;
        waiting_.wake_one();
    }
    // Waits until it is the caller's turn to try. kTimedOut: the deadline of the options has
    // passed. kCancelled: the wait was cancelled.
    Task<Result<void>> wait(core::WaitOptions options) {
        ++count_;
        const auto woken = co_await waiting_.wait(options);
        --count_;
        co_return woken;
    }

private:
    static constexpr std::uint32_t kTriesMax = 16;

    void begin_round() {
        tries_ = std::min(count_, kTriesMax);
        let_next_try();
    }

    core::WaitQueue waiting_;
    std::uint64_t changes_ = 0;
    std::uint32_t count_ = 0;
    std::uint32_t tries_ = 0;  // How many recalls may still try in this round.
};

}  // namespace fopd::library
