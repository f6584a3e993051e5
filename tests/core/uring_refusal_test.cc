// Goal: where io_uring is not to be had, its error says why and the administrator is told what to
// change.
// Method: a child process gives itself a seccomp filter as a container does, and reports through
// its exit code.

#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include <sys/syscall.h>

#include "core/uring_backend.h"
#include "tests/core/reactor_kinds.h"
#include "tests/core/seccomp_child.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {

bool refuse_io_uring(int os_errno) {
    const auto value = static_cast<std::uint32_t>(os_errno);
    return apply_seccomp(std::array{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | value),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    });
}

// 0 when all is as it should be, else the number of what is not.
int try_without(int os_errno, Errc code, const std::string& words) {
    if (!refuse_io_uring(os_errno)) return 1;
    const PosixClock clock;
    NullEventSink events;
    const auto backend = make_uring_backend(clock, events);
    if (backend) return 2;
    if (backend.error().os_errno != os_errno || backend.error().code != code) return 3;
    if (explain_no_uring(backend.error()).find(words) == std::string::npos) return 4;
    const auto poll = make_poll_backend(clock);  // The client library goes on with this one.
    return poll ? 0 : 5;
}

struct Refusal {
    int os_errno;
    Errc code;
    const char* words;
};

Task<Result<std::uint32_t>> one_nop(Reactor* reactor) {
    co_return co_await reactor->nop();
}

}  // namespace

TEST_CASE("core io_uring: a refused ring is an error that says what to change", "[core]") {
    const auto refusal = GENERATE(Refusal{EPERM, Errc::kDenied, "kernel.io_uring_disabled"},
                                  Refusal{ENOSYS, Errc::kUnsupported, "Linux 5.19"},
                                  Refusal{ENOMEM, Errc::kNoSpace, "LimitMEMLOCK"});
    CAPTURE(refusal.os_errno);

    REQUIRE(run_in_child(
                [&] { return try_without(refusal.os_errno, refusal.code, refusal.words); }) == 0);
}

TEST_CASE("core io_uring: with SQPOLL it works, or says once that it does without", "[core]") {
    const PosixClock clock;
    CountingSink events;
    auto backend = make_uring_backend(clock, events, {.sqpoll = true});
    REQUIRE(backend.has_value());
    Reactor reactor(std::move(*backend));

    const auto done = reactor.run_until_done(one_nop(&reactor));

    REQUIRE(done.has_value());
    REQUIRE(events.names.size() <= 1);
    if (!events.names.empty()) {
        REQUIRE(events.names[0] == "reactor.without_feature");
        REQUIRE(events.keys == std::vector<std::string>{"feature", "reason"});
    }
}

TEST_CASE("core io_uring: a table the kernel refuses is said, and done without", "[core]") {
    const PosixClock clock;
    CountingSink events;
    // More files than the limit on descriptors allows.
    auto backend = make_uring_backend(clock, events, {.file_entries = 1U << 30});
    REQUIRE(backend.has_value());
    Reactor reactor(std::move(*backend));
    const TempFile file;

    REQUIRE(events.names == std::vector<std::string>{"reactor.without_fixed_files"});
    const auto attached = reactor.attach(file.fd());
    REQUIRE(attached.has_value());
    REQUIRE(attached->entry == -1);
    reactor.detach(*attached);
}
