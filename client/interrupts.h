// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>

#include "core/cancel.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/time.h"

namespace fopd::client {

// The set of these signals without those that are ignored. The parent process may have decided to
// ignore a signal, as nohup does; if it were blocked, it would be delivered although it is ignored.
sigset_t without_ignored(std::initializer_list<int> numbers);

// Blocks the signals that end a program, unless they are ignored, in the thread that makes this and
// in threads that it starts later, so that the program can clean up first. Afterwards the program
// ends by the signal as if it had not been blocked. With Usual::kInterrupt, Ctrl-C is the normal
// way to end, and no failure.
class Interrupts {
public:
    enum class Usual : std::uint8_t { kNothing, kInterrupt };
    explicit Interrupts(Usual usual);
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    // Waits until `fd` (-1: none) is readable or the time is over. False: a signal arrived.
    bool wait(int fd, Duration span);

    // Readable when a signal has arrived. take() accepts it; the next signal ends the program at
    // once.
    int fd() const { return fd_; }
    void take();
    bool taken() const { return taken_; }

private:
    const Usual usual_;
    const sigset_t watched_;
    sigset_t before_{};
    int fd_ = -1;
    int ended_by_ = 0;
    bool taken_ = false;
};

// Cancels a source when a descriptor becomes readable, such as Interrupts::fd().
class CancelledBy {
public:
    // fd -1: never.
    CancelledBy(core::Reactor& reactor, int fd, core::CancelSource& source);
    // Ends the watch. Awaited once.
    Task<void> close();

private:
    Task<void> watch(int fd);

    core::Reactor& reactor_;
    core::CancelSource& source_;
    core::CancelSource ended_;
    core::Gate gate_;
};

}  // namespace fopd::client
