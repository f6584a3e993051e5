#pragma once

#include <csignal>
#include <exception>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

// Calls `hold` in a process of its own and kills that process when `hold` calls its argument. On
// return the process is gone, but the kernel may still keep files of its io_uring open.
template <typename Hold>
void kill_process_that(Hold hold) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    const pid_t process = ::fork();
    if (process == 0) {
        const auto ready = [&ends] {
            if (::write(ends[1], "x", 1) != 1) ::_exit(1);
            for (;;) ::pause();
        };
        try {
            hold(ready);
        } catch (const std::exception&) {
        }
        ::_exit(1);
    }
    ::close(ends[1]);
    char byte = 0;
    const bool holds = process > 0 && ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
    if (process > 0) {
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
    }
    if (!holds) throw std::runtime_error("the process to kill did not get ready");
}
