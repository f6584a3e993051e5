#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <sys/types.h>
#include <sys/uio.h>

#include "core/io.h"
#include "core/result.h"
#include "fabric/address.h"
#include "fabric/socket_address.h"

namespace fopd::fabric {

class Sockets;

// The error for a socket that could not connect.
inline Error not_connected(int os_errno) {
    const bool nobody_listens = os_errno == ECONNREFUSED;
    return {.code = nobody_listens ? Errc::kNotFound : Errc::kClosed,
            .os_errno = os_errno,
            .context = "connect"};
}

// A socket that is closed with its owner.
class OwnedSocket {
public:
    OwnedSocket() = default;
    OwnedSocket(Sockets& sockets, int fd) : sockets_(&sockets), fd_(fd) {}
    ~OwnedSocket();
    OwnedSocket(OwnedSocket&& other) noexcept
        : sockets_(other.sockets_), fd_(std::exchange(other.fd_, -1)) {}
    OwnedSocket& operator=(OwnedSocket&& other) noexcept {
        std::swap(sockets_, other.sockets_);
        std::swap(fd_, other.fd_);
        return *this;
    }

    // The descriptor, for the functions of Sockets and for Reactor::poll(). Negative: there is no
    // socket.
    int fd() const { return fd_; }

private:
    Sockets* sockets_ = nullptr;
    int fd_ = -1;
};

// The system calls that `tcp` makes for its sockets. None of them blocks. Those that return a
// number return a negative errno if they fail, EAGAIN if they would have to wait: the reactor polls
// the descriptor. May be called from any thread; one socket is used by one thread at a time.
class Sockets {
public:
    virtual ~Sockets() = default;

    // Whether the processes that use these sockets are simulated, and may end at any time.
    virtual bool is_simulated() const = 0;
    // Drops a poll whose process ends before it has completed. REQUIRES: is_simulated().
    virtual void abandon(core::IoOp& poll) = 0;

    struct Listening {
        OwnedSocket socket;
        Address address;  // With the actual port if port 0 was requested.
    };
    virtual Result<Listening> listen(const Address& address, int backlog) = 0;
    // Returns a descriptor, and the peer's address.
    virtual int accept(int listening, SocketAddress& peer) = 0;
    // Begins to connect; afterwards the socket is writable. `host` is the name of this host.
    virtual Result<OwnedSocket> connect(const std::string& host, const SocketAddress& peer) = 0;
    // The errno of the failed connect, or 0.
    virtual int connect_error(int fd) = 0;

    // Receive into `parts`, or send them, in their order. May move only a part of the bytes. 0
    // received bytes: the peer has ended the connection.
    virtual ssize_t receive(int fd, std::span<iovec> parts) = 0;
    // Whether the caller sends more at once: the kernel may then wait with the last segment.
    enum class Follows : std::uint8_t { kNothing, kMore };
    virtual ssize_t send(int fd, std::span<iovec> parts, Follows follows) = 0;

    // Ends the connection; the descriptor stays open.
    virtual void end(int fd) = 0;
    virtual void close(int fd) = 0;
};

inline OwnedSocket::~OwnedSocket() {
    if (fd_ >= 0) sockets_->close(fd_);
}

}  // namespace fopd::fabric
