#include "core/core_dumps.h"

#include <cerrno>

#include <sys/prctl.h>
#include <sys/resource.h>

namespace fopd::core {

Result<void> forbid_core_dumps() {
    // Not 0: the kernel would still hand the dump to a program. 1 is too little for any file, and
    // tells the kernel to hand it to nobody (core(5)).
    const rlimit limit{.rlim_cur = 1, .rlim_max = 1};
    if (::setrlimit(RLIMIT_CORE, &limit) == 0) return {};
    // Limits may be out of reach: of a service that may not change any, or below 1 already. This
    // does the same, and also keeps debuggers of the same user away.
    if (::prctl(PR_SET_DUMPABLE, 0) == 0) return {};
    return std::unexpected(os_error(errno, "forbid core dumps"));
}

}  // namespace fopd::core
