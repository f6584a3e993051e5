#include "tests/eh/scripted_server.h"

#include <array>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/whole_number.h"

namespace fopd::eh::testing {

namespace {

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int tcp_socket() {
    return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

}  // namespace

Connection Connection::to(std::uint16_t port) {
    Connection connection(tcp_socket());
    const sockaddr_in address = loopback(port);
    if (::connect(connection.fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) != 0)
        throw std::runtime_error("connect");
    return connection;
}

std::string Connection::read_request() {
    std::string request;
    constexpr std::string_view kLength = "Content-Length: ";
    for (;;) {
        const std::size_t end = request.find("\r\n\r\n");
        if (end != std::string::npos) {
            const std::size_t at = request.find(kLength) + kLength.size();
            const auto size = core::whole_number<std::size_t>(
                std::string_view(request).substr(at, request.find('\r', at) - at));
            if (size && request.size() >= end + 4 + *size) return request;
        }
        const std::string more = read_some();
        if (more.empty()) return {};
        request += more;
    }
}

std::string Connection::read_some() {
    std::array<char, 65'536> part;
    const ssize_t size = ::read(fd_.get(), part.data(), part.size());
    return size <= 0 ? std::string() : std::string(part.data(), static_cast<std::size_t>(size));
}

bool Connection::write(std::string_view text) {
    while (!text.empty()) {
        const ssize_t size = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
        if (size <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
}

bool Connection::is_closed_within(int ms) {
    pollfd end{.fd = fd_.get(), .events = POLLRDHUP, .revents = 0};
    return ::poll(&end, 1, ms) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

ScriptedServer::ScriptedServer(std::function<void(Connection&)> serve) : listener_(tcp_socket()) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), generic, size) != 0 || ::listen(listener_.get(), 8) != 0 ||
        ::getsockname(listener_.get(), generic, &size) != 0)
        throw std::runtime_error("listen");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, serve = std::move(serve)] {
        for (;;) {
            const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) return;
            Connection connection(fd);
            serve(connection);
        }
    });
}

ScriptedServer::~ScriptedServer() {
    // Ends accept().
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
}

}  // namespace fopd::eh::testing
