#include "core/core_dumps.h"

#include <cerrno>

#include <sys/prctl.h>
#include <sys/resource.h>

namespace fopd::core {

Result<void> forbid_core_dumps() {
    // Not 0: then the kernel would still pass the dump to a core_pattern program. 1 is too small
    // for any file, and tells the kernel not to pass it on either (core(5)).
    const rlimit limit{.rlim_cur = 1, .rlim_max = 1};
    if (::setrlimit(RLIMIT_CORE, &limit) == 0) return {};
    // The limit may be impossible to set, for example for a service that may not change limits, or
    // if it is below 1 already. This has the same effect, and also blocks debuggers of the same
    // user.
    if (::prctl(PR_SET_DUMPABLE, 0) == 0) return {};
    return std::unexpected(os_error(errno, "forbid core dumps"));
}

}  // namespace fopd::core
