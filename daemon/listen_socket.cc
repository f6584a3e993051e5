#include "daemon/listen_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/directory.h"

namespace fopd::daemon {

namespace {

constexpr int kBacklog = 128;
constexpr mode_t kSocketMode = 0660;
constexpr int kLockTriesMax = 200;
constexpr int kLockPauseMs = 10;
constexpr const char* kGroup = "fopd";

std::unexpected<StartProblem> problem(int exit_code, std::string message) {
    return std::unexpected(StartProblem{.exit_code = exit_code, .message = std::move(message)});
}

std::string address_words_of(int os_errno) {
    return std::system_category().message(os_errno);
}

sockaddr_un unix_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    return address;
}

std::optional<gid_t> group_id() {
    std::vector<char> buffer(16384);
    group entry{};
    group* found = nullptr;
    if (getgrnam_r(kGroup, &entry, buffer.data(), buffer.size(), &found) != 0) return std::nullopt;
    if (found == nullptr) return std::nullopt;
    return found->gr_gid;
}

// Another start with a socket in the same directory holds the lock for a few system calls. A longer
// holder is not fopd; this gives up after a while, which flock() alone would not.
bool lock_soon(int fd) {
    for (int tries = 0; tries < kLockTriesMax; ++tries) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK) return false;
        poll(nullptr, 0, kLockPauseMs);
    }
    return false;
}

// Checks that nothing listens at the path: then the file was left by a killed process.
Started<void> require_unused(const std::string& path) {
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return {};
        return problem(kExitDataDir, "admin socket " + path + ": " + address_words_of(errno));
    }
    if (!S_ISSOCK(status.st_mode)) {
        return problem(kExitDataDir,
                       "admin socket " + path +
                           ": a file that is not a socket is there; remove it, or set "
                           "admin.socket to another path");
    }
    const core::OwnedFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (probe.get() < 0) {
        return problem(kExitSystem, "admin socket " + path + ": " + address_words_of(errno));
    }
    const sockaddr_un address = unix_address(path);
    if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
        ucred peer{};
        socklen_t size = sizeof(peer);
        const bool is_known = getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
        return problem(kExitInUse, "admin socket " + path + " is in use by process " +
                                       (is_known ? std::to_string(peer.pid) : "unknown"));
    }
    if (errno == EAGAIN) {
        return problem(kExitInUse, "admin socket " + path + " is in use by a busy process");
    }
    if (errno != ECONNREFUSED) {
        return problem(kExitDataDir,
                       "admin socket " + path +
                           ": cannot tell whether it is in use: " + address_words_of(errno));
    }
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
        return problem(kExitDataDir,
                       "admin socket " + path +
                           ": a stale socket cannot be removed: " + address_words_of(errno));
    }
    return {};
}

Started<UnixListener> bind_unix(const std::string& path) {
    UnixListener listener;
    listener.socket = core::OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    listener.path = path;
    const int fd = listener.socket.get();
    if (fd < 0) return problem(kExitSystem, "admin socket: " + address_words_of(errno));
    const sockaddr_un address = unix_address(path);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return problem(kExitDataDir, "admin socket " + path + ": " + address_words_of(errno));
    }
    // No client can connect before listen(), so setting the mode here is early enough without a
    // umask.
    struct stat status{};
    if (lstat(path.c_str(), &status) == 0 && chmod(path.c_str(), kSocketMode) == 0) {
        listener.device = status.st_dev;
        listener.inode = status.st_ino;
        const std::optional<gid_t> group = group_id();
        // Under systemd it is our own group already, and chown() is not allowed.
        listener.has_group = group && (status.st_gid == *group ||
                                       lchown(path.c_str(), static_cast<uid_t>(-1), *group) == 0);
        if (listen(fd, kBacklog) == 0) return listener;
    }
    const int failure = errno;
    unlink(path.c_str());
    return problem(kExitDataDir, "admin socket " + path + ": " + address_words_of(failure));
}

struct FreeAddresses {
    void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::uint16_t bound_port(int fd) {
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
    // The port has the same offset in both address families.
    return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

std::string numeric_host(const addrinfo& address) {
    std::array<char, NI_MAXHOST> host{};
    if (getnameinfo(address.ai_addr, address.ai_addrlen, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
        return "?";
    }
    return address.ai_family == AF_INET6 ? "[" + std::string(host.data()) + "]" : host.data();
}

// A listener, or the errno of the failed call.
std::expected<TcpListener, int> bind_tcp(const addrinfo& address) {
    TcpListener listener;
    listener.socket =
        core::OwnedFd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int fd = listener.socket.get();
    const int yes = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, address.ai_addr, address.ai_addrlen) != 0 || listen(fd, kBacklog) != 0) {
        return std::unexpected(errno);
    }
    listener.port = bound_port(fd);
    listener.address = numeric_host(address) + ":" + std::to_string(listener.port);
    return listener;
}

// Like bind_tcp(), but never uses one of `kept_ports`. A listener at one of them stays open until
// another port is found, so that the kernel does not choose this port again.
std::expected<TcpListener, int> bind_other_tcp(const addrinfo& address,
                                               std::span<const std::uint16_t> kept_ports) {
    auto listener = bind_tcp(address);
    if (!listener || std::ranges::find(kept_ports, listener->port) == kept_ports.end()) {
        return listener;
    }
    return bind_other_tcp(address, kept_ports);
}

}  // namespace

void UnixListener::remove_file() const {
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0) return;
    if (status.st_dev == device && status.st_ino == inode) unlink(path.c_str());
}

Started<UnixListener> listen_unix(const std::string& path) {
    if (path.empty() || path.size() > kUnixPathBytesMax || path.find('\0') != std::string::npos) {
        return problem(kExitDataDir, "admin socket " + path + ": a socket's path has 1 to " +
                                         std::to_string(kUnixPathBytesMax) + " bytes, this one " +
                                         std::to_string(path.size()));
    }
    const std::string directory = core::directory_of(path);
    // The lock makes the stale check and the replacement one step. It is released with the
    // descriptor.
    const core::OwnedFd guard = core::open_directory(directory);
    if (guard.get() < 0) {
        return problem(
            exit_code_for(errno, kExitDataDir),
            "admin socket " + path + ": directory " + directory + ": " + address_words_of(errno));
    }
    if (!lock_soon(guard.get())) {
        return problem(kExitInUse, "admin socket " + path +
                                       ": another process is just starting in " + directory);
    }
    const auto unused = require_unused(path);
    if (!unused) return std::unexpected(unused.error());
    return bind_unix(path);
}

Started<TcpListener> listen_tcp(const config::Address& address,
                                std::span<const std::uint16_t> kept_ports) {
    const std::string name = "metrics address " + config::format_address(address);
    addrinfo hints{};
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int failure =
        getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
    if (failure != 0) return problem(kExitConfig, name + ": " + gai_strerror(failure));
    const std::unique_ptr<addrinfo, FreeAddresses> addresses(list);

    int first_errno = 0;
    for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
        auto listener = address.port == 0 ? bind_other_tcp(*at, kept_ports) : bind_tcp(*at);
        if (listener) return std::move(*listener);
        if (first_errno == 0 || listener.error() == EADDRINUSE) first_errno = listener.error();
    }
    if (first_errno == EADDRINUSE) return problem(kExitInUse, name + " is in use");
    const bool is_denied = first_errno == EACCES || first_errno == EPERM;
    return problem(is_denied ? kExitSystem : exit_code_for(first_errno, kExitConfig),
                   name + ": " + address_words_of(first_errno));
}

}  // namespace fopd::daemon
