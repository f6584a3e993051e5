#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/events.h"
#include "tests/catch.h"

// For tests whose child process gives itself a seccomp filter, as a container does.
namespace fopd::core::testing {

template <std::size_t Count>
bool apply_seccomp(std::array<sock_filter, Count> filter) {
    const sock_fprog program{.len = filter.size(), .filter = filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What `job` returns in a child process, which must not end otherwise.
template <typename Job>
int run_in_child(Job job) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(job());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

// Keeps the names of events, and of their fields.
class CountingSink final : public EventSink {
public:
    void emit(Level, std::string_view name, std::span<const Field> fields) override {
        names.emplace_back(name);
        for (const Field& field : fields) keys.emplace_back(field.key);
    }
    bool wants(Level) const override { return true; }
    std::vector<std::string> names;
    std::vector<std::string> keys;
};

}  // namespace fopd::core::testing
