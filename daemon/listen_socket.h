#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <sys/types.h>

#include "config/address.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// Owns a descriptor and closes it.
class ListenSocket {
public:
    ListenSocket() = default;
    explicit ListenSocket(int fd) : fd_(fd) {}
    ~ListenSocket();
    ListenSocket(ListenSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    ListenSocket& operator=(ListenSocket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }

    int fd() const { return fd_; }
    int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

// A UNIX socket that listens at a path, mode 0660, with group fopd if that group exists and we may
// set it.
struct UnixListener {
    ListenSocket socket;
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    bool has_group = false;

    // Removes the file if it is still this socket's.
    void remove_file() const;
};

// Replaces a socket file on which nothing listens. A socket in use, or a file that is not a socket,
// is left alone. If two processes start at the same path at once, one of them fails and the other
// is not disturbed.
Started<UnixListener> listen_unix(const std::string& path);

struct TcpListener {
    ListenSocket socket;
    std::string address;  // As bound: "127.0.0.1:9420", "[::1]:9420".
    std::uint16_t port = 0;
};

// Port 0 takes any free port but `kept_ports`, at which this process listens later. Resolves the
// host's name, which may block.
Started<TcpListener> listen_tcp(const config::Address& address,
                                std::span<const std::uint16_t> kept_ports);

}  // namespace fopd::daemon
