#include "core/killed_process.h"

#include <cerrno>

#include <poll.h>
#include <sys/file.h>

namespace fopd::core {

namespace {

constexpr int kPauseMs = 5;
constexpr int kTriesMax = 400;

}  // namespace

bool KilledProcessWait::again() {
    if (++tries_ > kTriesMax) return false;
    ::poll(nullptr, 0, kPauseMs);
    return true;
}

Result<void> lock_file(int fd, const LockWords& words) {
    const auto lock = [fd] { return ::flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno; };
    const int failed = wait_for_killed_process(EWOULDBLOCK, lock);
    if (failed == 0) return {};
    if (failed == EWOULDBLOCK) return std::unexpected(os_error(EBUSY, words.held));
    return std::unexpected(os_error(failed, words.failed));
}

}  // namespace fopd::core
