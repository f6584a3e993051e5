#include "tests/client/run_program.h"

#include <array>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kPatienceMs = 60'000;

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> all;
    for (std::string& string : strings) all.push_back(string.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace

Ran run_program(const std::vector<std::string>& command,
                const std::vector<std::string>& environment) {
    std::vector<std::string> arguments = command;
    std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"};
    variables.insert(variables.end(), environment.begin(), environment.end());
    const auto argv = pointers(arguments);
    const auto envp = pointers(variables);
    std::array<std::array<int, 2>, 2> pipes{};
    for (auto& ends : pipes) {
        if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
    }
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipes[0][1], STDOUT_FILENO);
        dup2(pipes[1][1], STDERR_FILENO);
        execve(argv[0], argv.data(), envp.data());
        _exit(126);
    }
    Ran ran;
    std::array<pollfd, 2> ends{};
    for (std::size_t i = 0; i < pipes.size(); ++i) {
        close(pipes[i][1]);
        ends[i] = {.fd = pipes[i][0], .events = POLLIN, .revents = 0};
    }
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (poll(ends.data(), ends.size(), kPatienceMs) <= 0) {
            kill(child, SIGKILL);
            break;
        }
        for (std::size_t i = 0; i < ends.size(); ++i) {
            if (ends[i].fd < 0 || ends[i].revents == 0) continue;
            std::array<char, 4096> part{};
            const ssize_t size = read(ends[i].fd, part.data(), part.size());
            if (size <= 0) {
                ends[i].fd = -1;
            } else {
                (i == 0 ? ran.out : ran.err).append(part.data(), static_cast<std::size_t>(size));
            }
        }
    }
    for (auto& one : pipes) close(one[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ran.signal = WTERMSIG(status);
    return ran;
}
