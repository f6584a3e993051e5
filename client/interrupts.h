// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <csignal>
#include <cstdint>

#include "core/time.h"

namespace fopd::client {

// The signals that end a program are taken by the thread that makes this, and those it starts
// later, so that the program can put things in order first. It ends by them then, as if they had
// not been taken; with Usual::kInterrupt, Ctrl-C is the usual end and no failure.
class Interrupts {
public:
    enum class Usual : std::uint8_t { kNothing, kInterrupt };
    explicit Interrupts(Usual usual);
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    // Until `fd` can be read from, unless it is -1, or the time is over. False when a signal came.
    bool wait(int fd, Duration span);

    // Can be read from when a signal came; take() then takes it, and the next one ends the program
    // at once.
    int fd() const { return fd_; }
    void take();
    bool taken() const { return taken_; }

private:
    const Usual usual_;
    sigset_t watched_{};
    sigset_t before_{};
    int fd_ = -1;
    int ended_by_ = 0;
    bool taken_ = false;
};

}  // namespace fopd::client
