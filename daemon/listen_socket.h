#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>
#include <sys/un.h>

#include "config/address.h"
#include "core/owned_fd.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

inline constexpr std::size_t kUnixPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

// A UNIX socket that listens at a path, mode 0660, with group fopd if that group exists and we may
// set it.
struct UnixListener {
    core::OwnedFd socket;
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
    core::OwnedFd socket;
    std::string address;  // The bound address: "127.0.0.1:9420", "[::1]:9420".
    std::uint16_t port = 0;
};

// Port 0 takes any free port but `kept_ports`, at which this process listens later. Resolves the
// host's name, which may block.
Started<TcpListener> listen_tcp(const config::Address& address,
                                std::span<const std::uint16_t> kept_ports);

}  // namespace fopd::daemon
