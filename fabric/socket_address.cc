#include "fabric/socket_address.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <netdb.h>

namespace fopd::fabric {

Result<SocketAddress> socket_address(const Address& address, const std::string& scheme) {
    if (address.scheme != scheme) {
        return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "address of another transport"});
    }
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    if (::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &found) != 0) {
        return std::unexpected(
            Error{.code = Errc::kInvalid,
                  .context = "the host is not a numeric address; resolve it first"});
    }
    SocketAddress result;
    result.size = found->ai_addrlen;
    std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
    return result;
}

Result<core::OwnedFd> listening_socket(const Address& address, const std::string& scheme,
                                       int backlog) {
    const auto name = socket_address(address, scheme);
    if (!name) return std::unexpected(name.error());
    core::OwnedFd fd(
        ::socket(name->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) return std::unexpected(os_error(errno, "socket"));
    const int on = 1;
    // Connections of an earlier process that are still ending do not hold the port.
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(fd.get(), name->get(), name->size) != 0) {
        return std::unexpected(os_error(errno, "bind"));
    }
    if (::listen(fd.get(), backlog) != 0) return std::unexpected(os_error(errno, "listen"));
    return fd;
}

Address address_of(const std::string& scheme, const sockaddr* address, std::size_t size_bytes) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (address == nullptr ||
        ::getnameinfo(address, static_cast<socklen_t>(size_bytes), host.data(), host.size(),
                      port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return Address{.scheme = scheme, .host = "unknown", .port = 0, .locality = {}};
    }
    return Address{.scheme = scheme,
                   .host = host.data(),
                   .port = static_cast<std::uint16_t>(std::atoi(port.data())),
                   .locality = {}};
}

}  // namespace fopd::fabric
