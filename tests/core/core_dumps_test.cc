#include "core/core_dumps.h"

#include <csignal>
#include <cstdlib>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.h"

namespace fopd::core {

TEST_CASE("core dumps: a process that forbade them leaves none", "[core][real]") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // Not the test program's own way of telling of a signal.
        ::signal(SIGABRT, SIG_DFL);
        rlimit limit{};
        ::getrlimit(RLIMIT_CORE, &limit);
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_CORE, &limit);
        if (!forbid_core_dumps()) ::_exit(1);
        std::abort();
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);

    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGABRT);
    CHECK_FALSE(WCOREDUMP(status));
}

}  // namespace fopd::core
