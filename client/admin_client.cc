// SPDX-License-Identifier: BSD-2-Clause
#include "client/admin_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/owned_fd.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

using SteadyClock = std::chrono::steady_clock;

// A socket whose server has too many connections to accept is tried again after this.
constexpr std::chrono::milliseconds kFullPause{10};
constexpr std::size_t kPartBytes = 64U << 10;
// The most bytes of the status line and the headers, in addition to the body.
constexpr std::size_t kHeadersMax = 64U << 10;

struct Failed {
    AdminFailure kind = AdminFailure::kNoServer;
    std::string why{};
};

std::unexpected<Failed> system_failure(int os_errno) {
    const bool denied = os_errno == EACCES || os_errno == EPERM;
    return std::unexpected(Failed{.kind = denied ? AdminFailure::kDenied : AdminFailure::kNoServer,
                                  .why = std::system_category().message(os_errno)});
}

// One request and its answer. Each wait ends at the deadline, or when `interrupt_fd` is readable.
class Exchange {
public:
    Exchange(std::optional<SteadyClock::time_point> deadline, int interrupt_fd)
        : deadline_(deadline), interrupt_fd_(interrupt_fd) {}

    std::expected<void, Failed> connect(const std::string& path) {
        sockaddr_un name{};
        name.sun_family = AF_UNIX;
        if (path.size() >= sizeof name.sun_path) return system_failure(ENAMETOOLONG);
        path.copy(name.sun_path, sizeof name.sun_path - 1);
        fd_ = core::OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (fd_.get() < 0) return system_failure(errno);
        while (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) return system_failure(errno);
            if (auto paused = wait(-1, 0, kFullPause); !paused) return paused;
        }
        return {};
    }

    // A server that refuses a request may not read all of it: its answer says why.
    std::expected<void, Failed> send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent >= 0) {
                bytes.remove_prefix(static_cast<std::size_t>(sent));
            } else if (errno == EPIPE || errno == ECONNRESET) {
                return {};
            } else if (errno == EAGAIN) {
                if (auto ready = wait(fd_.get(), POLLOUT); !ready) return ready;
            } else if (errno != EINTR) {
                return system_failure(errno);
            }
        }
        return {};
    }

    // Receives all bytes until the server ends the connection.
    std::expected<std::string, Failed> receive(std::size_t bytes_max) {
        std::string all;
        std::array<char, kPartBytes> part;
        for (;;) {
            const ssize_t received = ::recv(fd_.get(), part.data(), part.size(), 0);
            if (received > 0) {
                all.append(part.data(), static_cast<std::size_t>(received));
                if (all.size() > bytes_max) {
                    return std::unexpected(
                        Failed{.kind = AdminFailure::kBadAnswer, .why = "it is too long"});
                }
            } else if (received == 0 || errno == ECONNRESET) {
                return all;
            } else if (errno == EAGAIN) {
                if (auto ready = wait(fd_.get(), POLLIN); !ready) {
                    return std::unexpected(std::move(ready.error()));
                }
            } else if (errno != EINTR) {
                return system_failure(errno);
            }
        }
    }

private:
    // Waits for one of the events, or until the pause is over.
    std::expected<void, Failed> wait(int fd, short events,
                                     std::optional<std::chrono::milliseconds> pause = {}) {
        for (;;) {
            std::optional<std::chrono::milliseconds> span = pause;
            if (deadline_) {
                const auto left =
                    std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - SteadyClock::now());
                if (left.count() <= 0) {
                    return std::unexpected(Failed{.kind = AdminFailure::kTimedOut});
                }
                span = span ? std::min(*span, left) : left;
            }
            std::array watched{pollfd{.fd = fd, .events = events, .revents = 0},
                               pollfd{.fd = interrupt_fd_, .events = POLLIN, .revents = 0}};
            const int timeout_ms = span ? static_cast<int>(std::min<std::int64_t>(
                                              span->count(), std::numeric_limits<int>::max()))
                                        : -1;
            const int ready = ::poll(watched.data(), watched.size(), timeout_ms);
            if (ready < 0 && errno != EINTR) return system_failure(errno);
            if (ready > 0 && watched[1].revents != 0) {
                return std::unexpected(Failed{.kind = AdminFailure::kInterrupted});
            }
            if (ready > 0 || (ready == 0 && pause)) return {};
        }
    }

    const std::optional<SteadyClock::time_point> deadline_;
    const int interrupt_fd_;
    core::OwnedFd fd_;
};

std::expected<std::string, Failed> exchange(Exchange& with, const std::string& path,
                                            std::string_view request) {
    if (auto connected = with.connect(path); !connected) {
        return std::unexpected(std::move(connected.error()));
    }
    if (auto sent = with.send(request); !sent) return std::unexpected(std::move(sent.error()));
    return with.receive(AdminClient::kAnswerMax + kHeadersMax);
}

}  // namespace

std::string in_url(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                              (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
        if (is_plain) {
            out += c;
        } else {
            out += '%';
            out += kDigits[byte >> 4];
            out += kDigits[byte & 15];
        }
    }
    return out;
}

AdminClient::AdminClient(std::string socket_path, Duration timeout)
    : socket_path_(std::move(socket_path)),
      name_(core::printable(socket_path_)),
      timeout_(timeout) {}

std::expected<HttpAnswer, AdminProblem> AdminClient::get(const std::string& target,
                                                         int interrupt_fd) const {
    return ask(Method::kGet, target, interrupt_fd, {});
}

std::expected<HttpAnswer, AdminProblem> AdminClient::post(const std::string& target,
                                                          const std::string& body) const {
    return ask(Method::kPost, target, -1, body);
}

std::expected<HttpAnswer, AdminProblem> AdminClient::ask(Method method, const std::string& target,
                                                         int interrupt_fd,
                                                         const std::string& body) const {
    std::optional<SteadyClock::time_point> deadline;
    if (timeout_ > Duration{0}) deadline = SteadyClock::now() + timeout_;
    std::string request = (method == Method::kPost ? "POST " : "GET ") + target +
                          " HTTP/1.1\r\nHost: fopd\r\nConnection: close\r\n";
    if (method == Method::kPost) {
        request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    request += "\r\n" + body;

    Exchange with(deadline, interrupt_fd);
    const auto bytes = exchange(with, socket_path_, request);
    if (!bytes) return std::unexpected(problem_of(bytes.error().kind, bytes.error().why));
    if (bytes->empty()) return std::unexpected(problem_of(AdminFailure::kEnded, {}));
    auto answer = parse_http_answer(*bytes);
    if (!answer) return std::unexpected(problem_of(AdminFailure::kBadAnswer, answer.error()));
    return *std::move(answer);
}

AdminProblem AdminClient::problem_of(AdminFailure kind, std::string_view why) const {
    switch (kind) {
        case AdminFailure::kInterrupted: return {.kind = kind, .message = "interrupted"};
        case AdminFailure::kTimedOut:
            return {.kind = kind,
                    .message = "fopd at " + name_ + " gave no answer within the time of --timeout"};
        case AdminFailure::kDenied:
            return {.kind = kind,
                    .message = name_ + ": not allowed; be root or a member of the socket's group"};
        case AdminFailure::kEnded:
            return {.kind = kind,
                    .message = "fopd at " + name_ + " ended before it answered; see its log"};
        case AdminFailure::kBadAnswer:
            return {.kind = kind,
                    .message = "the program at " + name_ +
                               " is not fopd, or its answer is damaged: " + std::string(why)};
        case AdminFailure::kNoServer: break;
    }
    return {.kind = kind,
            .message = "no fopd answers at " + name_ + ": " + core::printable(why) +
                       "; start it (systemctl start fopd), or name its socket with --admin FILE or "
                       "FOPD_ADMIN"};
}

}  // namespace fopd::client
