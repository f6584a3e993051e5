#include "fabric/tcp/kernel_sockets.h"

#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/ensure.h"

namespace fopd::fabric {

namespace {

// How long the kernel keeps bytes that the peer does not take, after the end of a connection.
constexpr unsigned kUntakenMaxMs = 10'000;

// Makes the kernel send written bytes at once, without waiting for more.
void send_at_once(int fd) {
    const int on = 1;
    // Fails only for a socket that is closed, which the next call finds out.
    [[maybe_unused]] const int done = ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

msghdr message_of(std::span<iovec> parts) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    return message;
}

}  // namespace

Result<Sockets::Listening> KernelSockets::listen(const Address& address, int backlog) {
    auto fd = listening_socket(address, kTcpScheme, backlog);
    if (!fd) return std::unexpected(fd.error());
    SocketAddress real;
    if (::getsockname(fd->get(), real.get(), &real.size) != 0) {
        return std::unexpected(os_error(errno, "listen"));
    }
    Address bound = address;
    bound.port = address_of(kTcpScheme, real.get(), real.size).port;
    return Listening{.socket = OwnedSocket(*this, fd->release()), .address = std::move(bound)};
}

int KernelSockets::accept(int listening, SocketAddress& peer) {
    peer = {};
    const int fd = ::accept4(listening, peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return -errno;
    send_at_once(fd);
    return fd;
}

Result<OwnedSocket> KernelSockets::connect(const std::string&, const SocketAddress& peer) {
    OwnedSocket made(
        *this, ::socket(peer.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made.fd() < 0) return std::unexpected(os_error(errno, "socket"));
    send_at_once(made.fd());
    if (::connect(made.fd(), peer.get(), peer.size) != 0 && errno != EINPROGRESS) {
        return std::unexpected(not_connected(errno));
    }
    return made;
}

void KernelSockets::abandon(core::IoOp&) {
    ensure_failed("a poll of the kernel ends by itself", __FILE__, __LINE__);
}

int KernelSockets::connect_error(int fd) {
    int failed = 0;
    socklen_t size = sizeof failed;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 ? failed : errno;
}

ssize_t KernelSockets::receive(int fd, std::span<iovec> parts) {
    msghdr message = message_of(parts);
    const ssize_t received = ::recvmsg(fd, &message, MSG_DONTWAIT);
    return received < 0 ? -errno : received;
}

ssize_t KernelSockets::send(int fd, std::span<iovec> parts, Follows follows) {
    // The kernel sends the last bytes in one segment with those that follow.
    const int more = follows == Follows::kMore ? MSG_MORE : 0;
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | more;
    ssize_t sent;
    if (parts.size() == 1) {
        sent = ::send(fd, parts[0].iov_base, parts[0].iov_len, flags);
    } else {
        const msghdr message = message_of(parts);
        sent = ::sendmsg(fd, &message, flags);
    }
    return sent < 0 ? -errno : sent;
}

void KernelSockets::end(int fd) {
    // After this time the kernel drops bytes that the peer has not acknowledged.
    [[maybe_unused]] const int limited =
        ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUntakenMaxMs, sizeof kUntakenMaxMs);
    // The peer sees the end after the bytes that the kernel has taken.
    ::shutdown(fd, SHUT_RDWR);
}

void KernelSockets::close(int fd) {
    ::close(fd);
}

}  // namespace fopd::fabric
