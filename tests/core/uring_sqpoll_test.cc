// Goal: with SQPOLL, submissions and their completions need no system call while nothing sleeps.
// Method: a child process gives itself a seccomp filter that kills it when it asks the kernel for
// completions. Waking the kernel's thread is allowed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/uring_backend.h"
#include "tests/core/reactor_kinds.h"

namespace uring_sqpoll_test {

using namespace fopd;
using namespace fopd::core;

namespace {

constexpr int kWithoutSqpoll = 77;

bool forbid_to_ask_for_completions() {
    constexpr std::size_t kFlags = offsetof(seccomp_data, args) + 3 * sizeof(std::uint64_t);
    std::array filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 3),
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, IORING_ENTER_GETEVENTS, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = filter.size(), .filter = filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Notes whether the kernel refused SQPOLL.
class RefusalSink final : public EventSink {
public:
    void emit(Level, std::string_view name, std::span<const Field>) override {
        if (name == "reactor.without_feature") refused = true;
    }
    bool wants(Level) const override { return true; }
    bool refused = false;
};

struct Nop final : IoOp {
    Nop() : IoOp(&on_done) {}
    static void on_done(IoOp& op) { ++static_cast<Nop&>(op).done; }
    int done = 0;
};

// 0 when all is as it should be, else the number of what is not.
int submit_without_asking() {
    const PosixClock clock;
    RefusalSink events;
    auto made = make_uring_backend(clock, events, {.sqpoll = true});
    if (!made) return 1;
    if (events.refused) return kWithoutSqpoll;
    Backend& backend = **made;
    backend.wait(Instant::min());
    if (!forbid_to_ask_for_completions()) return 2;
    Nop nop;
    for (int round = 1; round <= 100; ++round) {
        nop.in_flight = true;
        backend.submit(nop);
        // A time that has come is no reason to sleep, either.
        backend.wait(round % 2 == 0 ? Instant::min() : backend.now());
        const Instant late = after(clock.now(), 30s);
        while (nop.in_flight) {
            if (clock.now() > late) return 4;
            ::sched_yield();
            backend.wait(Instant::min());
        }
        if (nop.done != round || nop.result != 0) return 3;
    }
    return 0;
}

}  // namespace

TEST_CASE("core io_uring: with SQPOLL only a sleep asks the kernel for completions", "[core]") {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(submit_without_asking());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);

    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kWithoutSqpoll) {
        WARN("skipped: this kernel refuses SQPOLL");
        return;
    }
    REQUIRE(WEXITSTATUS(status) == 0);
}

}  // namespace uring_sqpoll_test
