#include "core/killed_process.h"

#include <poll.h>

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

}  // namespace fopd::core
