#pragma once

#include "core/result.h"

namespace fopd::core {

// The kernel ends the io_uring of a killed process in the background. Until then, usually for less
// than 0.1 s, the ring keeps its files open: their locks are held, block devices are in use, and
// addresses are listened at. In this time writes that were in flight may still reach the files. A
// daemon that is started again at once waits for the end of its predecessor's ring with this class.
class KilledProcessWait {
public:
    // Blocks the thread for a moment and returns true, until about 2 s have passed in all. Then it
    // returns false: the process that holds the file is alive.
    bool again();

private:
    int tries_ = 0;
};

// Repeats `attempt`, which returns an errno or 0, as long as it returns `held_errno` and a killed
// process may be the reason. Returns the last errno. Blocks: for an Offload or the control thread.
template <typename Attempt>
int wait_for_killed_process(int held_errno, Attempt attempt) {
    KilledProcessWait wait;
    for (;;) {
        const int failed = attempt();
        if (failed != held_errno || !wait.again()) return failed;
    }
}

// Locks a file for this process alone, until it is closed. kBusy: a living process has locked it.
// Blocks.
struct LockWords {
    const char* held = nullptr;
    const char* failed = nullptr;
};
Result<void> lock_file(int fd, const LockWords& words);

}  // namespace fopd::core
