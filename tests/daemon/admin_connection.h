#pragma once

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/admin_server.h"
#include "tests/catch.h"
#include "tests/daemon/canned_handler.h"
#include "tests/slowness.h"
#include "tests/temp_dir.h"

// An admin server with a handler that answers what the test says, and raw connections to it.
namespace fopd::daemon::admin_testing {

inline constexpr int kPatienceMs = 30'000;
inline const config::Address kLoopback{.host = "127.0.0.1"};  // Any port.

class Connection {
public:
    explicit Connection(const std::string& path)
        : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
        is_connected_ =
            connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    // From 127.0.0.`from`. With small segments the kernel keeps little of what is sent to it.
    enum class Segments : std::uint8_t { kUsual, kSmall };
    explicit Connection(std::uint16_t port, std::uint32_t from = 1,
                        Segments segments = Segments::kUsual)
        : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        constexpr int kSmallBytes = 536;
        if (segments == Segments::kSmall) {
            REQUIRE(setsockopt(fd_, IPPROTO_TCP, TCP_MAXSEG, &kSmallBytes, sizeof(kSmallBytes)) ==
                    0);
        }
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
        REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        is_connected_ =
            connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    ~Connection() {
        if (fd_ >= 0) close(fd_);
    }
    Connection(Connection&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), is_connected_(other.is_connected_) {}

    bool is_connected() const { return is_connected_; }
    // False when the server no longer takes it.
    bool send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    // Whether the server has closed, and everything was received.
    bool is_ended() const {
        char byte = 0;
        return recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
    }
    // Everything until the server closes.
    std::string receive() {
        std::string all;
        std::array<char, 65536> part{};
        pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
        while (poll(&ready, 1, kPatienceMs) > 0) {
            const ssize_t size = recv(fd_, part.data(), part.size(), 0);
            if (size <= 0) return all;
            all.append(part.data(), static_cast<std::size_t>(size));
        }
        FAIL("the server neither answers nor closes");
        return all;
    }

private:
    int fd_;
    bool is_connected_ = false;
};

template <typename Where>
std::string ask(const Where& where, const std::string& request) {
    Connection connection(where);
    if (!connection.is_connected()) return "not connected";
    connection.send(request + " HTTP/1.1\r\nHost: fopd\r\n\r\n");
    return connection.receive();
}

inline int status_of(const std::string& reply) {
    return reply.starts_with("HTTP/1.1 ") ? std::stoi(reply.substr(9, 3)) : 0;
}

inline std::string body_of(const std::string& reply) {
    const std::size_t at = reply.find("\r\n\r\n");
    return at == std::string::npos ? "" : reply.substr(at + 4);
}

inline bool is_json_error(const std::string& reply) {
    const auto json = nlohmann::json::parse(body_of(reply), nullptr, false);
    return json.is_object() && json.contains("error");
}

inline std::size_t open_fds() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

struct Fixture {
    Fixture() {
        options.socket = dir / "admin.sock";
        options.idle_timeout = 1s * fopd::testing::kSlowness;
    }
    ~Fixture() { handler.release(); }

    StartProblem problem() {
        auto started = AdminServer::start(options, handler, events);
        REQUIRE_FALSE(started.has_value());
        REQUIRE(started.error().message.find('\n') == std::string::npos);
        return started.error();
    }
    void start() {
        auto started = AdminServer::start(options, handler, events);
        if (!started) FAIL(started.error().message);
        server = std::move(*started);
    }
    std::string get(const std::string& path) const { return ask(options.socket, "GET " + path); }

    TempDir dir;
    core::NullEventSink events;
    AdminServer::Options options;
    CannedHandler handler;
    std::unique_ptr<AdminServer> server;
};

}  // namespace fopd::daemon::admin_testing
