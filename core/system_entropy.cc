#include <cerrno>

#include <sys/random.h>

#include "core/ensure.h"
#include "core/entropy.h"

namespace fopd::core {

// The kernel's generator is initialised long before services start; without it the daemon cannot
// continue.
void SystemEntropy::fill(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        ENSURE(got > 0);
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
}

}  // namespace fopd::core
