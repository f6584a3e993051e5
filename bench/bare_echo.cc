#include "bench/bare_echo.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/child.h"
#include "bench/measure.h"

namespace fopd::bench {

namespace {

// -- plain sockets --

int loopback_socket(sockaddr_in& address) {
    address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail("no socket");
    return fd;
}

void send_at_once(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void send_all(int fd, const std::vector<char>& bytes) {
    if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
        fail("send");
}

// False at the end of the stream.
bool receive_all(int fd, std::vector<char>& bytes) {
    for (std::size_t got = 0; got < bytes.size();) {
        pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
        if (::poll(&waited, 1, -1) != 1) fail("poll");
        const ssize_t more = ::recv(fd, bytes.data() + got, bytes.size() - got, 0);
        if (more <= 0) return false;
        got += static_cast<std::size_t>(more);
    }
    return true;
}

void serve_socket(std::size_t bytes, const Child::Parent& parent) {
    sockaddr_in address{};
    const int listener = loopback_socket(address);
    socklen_t size = sizeof address;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener, 1) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        fail("listen");
    }
    parent.send(address.sin_port);
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) fail("accept");
    send_at_once(fd);
    std::vector<char> message(bytes);
    while (receive_all(fd, message)) send_all(fd, message);
}

// -- fi_pingpong --

constexpr const char* kPingpong = "fi_pingpong";
constexpr int kTries = 100;
constexpr auto kBetweenTries = std::chrono::milliseconds(20);

int free_port() {
    sockaddr_in address{};
    const int fd = loopback_socket(address);
    socklen_t size = sizeof address;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        fail("no free port");
    }
    ::close(fd);
    return ntohs(address.sin_port);
}

// Its output goes to `out_fd`; none where that is -1.
pid_t start(std::vector<std::string> words, std::size_t core, int out_fd) {
    const pid_t pid = ::fork();
    if (pid < 0) fail("fork");
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin_to(core);
    const int nothing = ::open("/dev/null", O_RDWR);
    if (nothing < 0) ::_exit(126);
    ::dup2(out_fd >= 0 ? out_fd : nothing, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    std::vector<char*> arguments;
    for (std::string& each : words) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
}

int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read_all(int fd) {
    std::string text;
    std::array<char, 4096> part;
    for (ssize_t got; (got = ::read(fd, part.data(), part.size())) > 0;) {
        text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
}

// The last line: bytes, sent, acknowledged, total, time, MB/s, µs for each transfer, transfers/µs.
double us_of_transfer(const std::string& table) {
    std::istringstream text(table);
    std::string last;
    for (std::string line; std::getline(text, line);) {
        if (!line.empty()) last = line;
    }
    std::istringstream words(last);
    std::string word;
    for (int column = 0; column < 7; ++column) words >> word;
    return std::strtod(word.c_str(), nullptr);
}

}  // namespace

double socket_echo_us(std::size_t bytes, int rounds) {
    const Child server([bytes](const Child::Parent& parent) { serve_socket(bytes, parent); });
    sockaddr_in address{};
    const int fd = loopback_socket(address);
    address.sin_port = server.receive<in_port_t>();
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
    send_at_once(fd);
    std::vector<char> message(bytes, 'x');
    const auto echo = [&] {
        send_all(fd, message);
        if (!receive_all(fd, message)) fail("the echo ended");
    };
    for (int i = 0; i < rounds / 10; ++i) echo();
    const Instant start = kClock.now();
    for (int i = 0; i < rounds; ++i) echo();
    const auto took = static_cast<double>((kClock.now() - start).count());
    ::close(fd);
    return took / 1000 / rounds;
}

std::optional<double> pingpong_echo_us(std::size_t bytes, int rounds) {
    const std::string port = std::to_string(free_port());
    const std::vector<std::string> words{kPingpong,
                                         "-p",
                                         "tcp",
                                         "-e",
                                         "msg",
                                         "-S",
                                         std::to_string(bytes),
                                         "-I",
                                         std::to_string(rounds)};
    auto server_words = words;
    server_words.insert(server_words.end(), {"-B", port});
    auto client_words = words;
    client_words.insert(client_words.end(), {"-P", port, "127.0.0.1"});

    const pid_t server = start(server_words, 0, -1);
    // Fails until the server listens.
    for (int i = 0; i < kTries; ++i) {
        std::this_thread::sleep_for(kBetweenTries);
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
        const pid_t client = start(client_words, 1, ends[1]);
        ::close(ends[1]);
        const std::string table = read_all(ends[0]);
        ::close(ends[0]);
        if (wait_for(client) != 0) {
            if (::waitpid(server, nullptr, WNOHANG) != 0) return std::nullopt;
            continue;
        }
        wait_for(server);
        return 2 * us_of_transfer(table);
    }
    ::kill(server, SIGKILL);
    wait_for(server);
    return std::nullopt;
}

}  // namespace fopd::bench
