#include "bench/child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"

namespace fopd::bench {

namespace {

std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe: " + std::string(std::strerror(errno)));
    return ends;
}

Duration read_clock(clockid_t id) {
    timespec time{};
    ::clock_gettime(id, &time);
    return Duration{static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec};
}

}  // namespace

Child::Child(const std::function<void(const Parent&)>& body) {
    const auto done = make_pipe();
    const auto report = make_pipe();
    pid_ = ::fork();
    if (pid_ < 0) fail("fork: " + std::string(std::strerror(errno)));
    if (pid_ == 0) {
        // A parent that fails must not leave a child behind that looks for work for ever.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(done[1]);
        ::close(report[0]);
        pin_to(0);
        Parent parent;
        parent.done_fd_ = done[0];
        parent.send_fd_ = report[1];
        body(parent);
        ::_exit(0);
    }
    ::close(done[0]);
    ::close(report[1]);
    done_fd_ = done[1];
    receive_fd_ = report[0];
    pin_to(1);
}

Child::~Child() {
    ::close(done_fd_);
    ::close(receive_fd_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (status != 0) fail("the other side failed");
}

void Child::Parent::send_bytes(const void* bytes, std::size_t size) const {
    if (::write(send_fd_, bytes, size) != static_cast<ssize_t>(size)) fail("the parent is gone");
}

void Child::receive_bytes(void* bytes, std::size_t size) const {
    if (::read(receive_fd_, bytes, size) != static_cast<ssize_t>(size)) {
        fail("the other side did not start");
    }
}

Duration Child::cpu_time() const {
    clockid_t clock{};
    if (::clock_getcpuclockid(pid_, &clock) != 0) fail("no clock of the other side");
    return read_clock(clock);
}

std::size_t Child::resident_bytes() const {
    std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
    std::size_t total_pages = 0;
    std::size_t resident_pages = 0;
    if (!(statm >> total_pages >> resident_pages)) fail("no memory figures of the other side");
    return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

Duration own_cpu_time() {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace fopd::bench
