// SPDX-License-Identifier: BSD-2-Clause
#include "client/interrupts.h"

#include <algorithm>
#include <array>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/complaints.h"

namespace fopd::client {

sigset_t without_ignored(std::initializer_list<int> numbers) {
    sigset_t signals{};
    sigemptyset(&signals);
    for (const int number : numbers) {
        struct sigaction now{};
        const bool is_known = sigaction(number, nullptr, &now) == 0;
        if (!is_known || now.sa_handler != SIG_IGN) sigaddset(&signals, number);
    }
    return signals;
}

Interrupts::Interrupts(Usual usual)
    : usual_(usual), watched_(without_ignored({SIGINT, SIGTERM, SIGHUP})) {
    pthread_sigmask(SIG_BLOCK, &watched_, &before_);
    fd_ = signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK);
}

Interrupts::~Interrupts() {
    if (fd_ >= 0) close(fd_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    if (ended_by_ == 0) return;
    end_complaints(128 + ended_by_);
    std::raise(ended_by_);
}

bool Interrupts::wait(int fd, Duration span) {
    std::array<pollfd, 2> watched{pollfd{.fd = fd_, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = fd, .events = POLLIN, .revents = 0}};
    const auto time = std::max<Duration>(span, Duration::zero());
    const timespec until{.tv_sec = static_cast<time_t>(time / 1s),
                         .tv_nsec = static_cast<long>((time % 1s).count())};
    ppoll(watched.data(), watched.size(), &until, nullptr);
    if (watched[0].revents == 0) return true;
    take();
    return false;
}

void Interrupts::take() {
    signalfd_siginfo signal{};
    if (read(fd_, &signal, sizeof signal) != sizeof signal) return;
    taken_ = true;
    const auto number = static_cast<int>(signal.ssi_signo);
    if (usual_ == Usual::kNothing || number != SIGINT) ended_by_ = number;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

CancelledBy::CancelledBy(core::Reactor& reactor, int fd, core::CancelSource& source)
    : reactor_(reactor), source_(source) {
    if (fd >= 0) reactor_.spawn(gate_, watch(fd));
}

Task<void> CancelledBy::close() {
    ended_.cancel();
    co_await gate_.close(reactor_);
}

Task<void> CancelledBy::watch(int fd) {
    const auto readable = co_await reactor_.poll(fd, POLLIN, {.cancel = &ended_});
    if (readable) source_.cancel();
}

}  // namespace fopd::client
