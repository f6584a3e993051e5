#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <sys/types.h>

#include "config/address.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// A descriptor that is closed with its owner.
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

// A UNIX socket that listens at a path, mode 0660, of group fopd where there is such a group and we
// may give it away.
struct UnixListener {
    ListenSocket socket;
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    bool has_group = false;

    // Removes the file if it is still this socket's.
    void remove_file() const;
};

// A socket file nobody answers at is replaced; one in use, and whatever is no socket, is left
// alone. Two processes that start at the same path at once do not disturb each other: one of them
// fails.
Started<UnixListener> listen_unix(const std::string& path);

struct TcpListener {
    ListenSocket socket;
    std::string address;  // As bound: "127.0.0.1:9420", "[::1]:9420".
    std::uint16_t port = 0;
};

// Port 0 takes any that is free. Looks the host's name up, which may take its time.
Started<TcpListener> listen_tcp(const config::Address& address);

}  // namespace fopd::daemon
