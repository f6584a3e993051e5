// Goal: with SQPOLL, submissions and their completions need no system call while nothing sleeps.
// Method: a child process gives itself a seccomp filter that kills it when it asks the kernel for
// completions. Waking the kernel's thread is allowed.

#include <array>
#include <cstddef>
#include <cstdint>

#include <linux/io_uring.h>
#include <sched.h>
#include <sys/syscall.h>

#include "core/uring_backend.h"
#include "tests/core/seccomp_child.h"

namespace uring_sqpoll_test {

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {

constexpr int kWithoutSqpoll = 77;

bool forbid_to_ask_for_completions() {
    constexpr std::size_t kFlags = offsetof(seccomp_data, args) + 3 * sizeof(std::uint64_t);
    return apply_seccomp(std::array{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 3),
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, IORING_ENTER_GETEVENTS, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    });
}

struct Nop final : IoOp {
    Nop() : IoOp(&on_done) {}
    static void on_done(IoOp& op) { ++static_cast<Nop&>(op).done; }
    int done = 0;
};

// 0 when all is as it should be, else the number of what is not.
int submit_without_asking() {
    const PosixClock clock;
    CountingSink events;
    auto made = make_uring_backend(clock, events, {.sqpoll = true});
    if (!made) return 1;
    if (events.names == std::vector<std::string>{"reactor.without_feature"}) return kWithoutSqpoll;
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
    const int wrong = run_in_child(submit_without_asking);

    if (wrong == kWithoutSqpoll) {
        WARN("skipped: this kernel refuses SQPOLL");
        return;
    }
    REQUIRE(wrong == 0);
}

}  // namespace uring_sqpoll_test
