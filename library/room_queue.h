#pragma once

#include <algorithm>
#include <cstdint>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"

namespace fopd::library {

// Recalls that wait for room on a disk. When room may have come, the oldest tries first, and each
// that has tried lets another one try: a smaller one may fit where a larger one does not. So
// not all of them search a disk at once when a little room comes. Each also tries by itself after a
// pause. Lives on one reactor.
class RoomQueue {
public:
    explicit RoomQueue(core::Reactor& reactor) : waiting_(reactor) {}

    // How often room may have come.
    std::uint64_t changes() const { return changes_; }
    // Room may have come on the disk.
    void room_came() {
        ++changes_;
        begin_round();
    }
    // A recall that was woken has found room, so others may find some, too.
    void found_room() { begin_round(); }
    // A recall that was woken has found no room, or needs none any more.
    void let_next_try() {
        if (tries_ == 0) return;
        --tries_;
        waiting_.wake_one();
    }
    // Waits until it is the caller's turn to try. kTimedOut, kCancelled: as options.
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
    std::uint32_t tries_ = 0;  // How many more may try in this round.
};

}  // namespace fopd::library
