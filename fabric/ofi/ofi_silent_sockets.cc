#include "fabric/ofi/ofi_silent_sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

namespace fopd::fabric {

namespace {

// Two or three system calls each, less than a millisecond in total.
constexpr unsigned kDescriptorsPerTurn = 256;
// How long the library may wait for the rest of a request. Data that has arrived is read at once.
constexpr timeval kReadMax{.tv_sec = 0, .tv_usec = 10'000};
// Seven system calls each; one of the seven sends.
constexpr unsigned kEndsPerTurn = 32;

void append_bytes(std::string& text, const void* bytes, std::size_t count) {
    text.append(static_cast<const char*>(bytes), count);
}

// Port, then host; empty if it is neither IPv4 nor IPv6.
std::string comparable(const sockaddr& address) {
    std::string text;
    if (address.sa_family == AF_INET) {
        const auto& ip = reinterpret_cast<const sockaddr_in&>(address);
        append_bytes(text, &ip.sin_port, sizeof ip.sin_port);
        append_bytes(text, &ip.sin_addr, sizeof ip.sin_addr);
    } else if (address.sa_family == AF_INET6) {
        const auto& ip = reinterpret_cast<const sockaddr_in6&>(address);
        append_bytes(text, &ip.sin6_port, sizeof ip.sin6_port);
        append_bytes(text, &ip.sin6_addr, sizeof ip.sin6_addr);
    }
    return text;
}

bool has_any_host(const std::string& address) {
    return std::all_of(address.begin() + sizeof(in_port_t), address.end(),
                       [](char byte) { return byte == 0; });
}

std::string address_by(int (*get)(int, sockaddr*, socklen_t*), int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    auto& address = reinterpret_cast<sockaddr&>(storage);
    return get(fd, &address, &size) == 0 ? comparable(address) : std::string();
}

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

bool hang_up(const sockaddr& own, const sockaddr& peer) {
    const std::string own_text = comparable(own);
    const std::string peer_text = comparable(peer);
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir("/proc/self/fd"));
    if (!directory) return false;
    while (const dirent* const entry = ::readdir(directory.get())) {
        const int fd = std::atoi(entry->d_name);
        if (address_by(&::getsockname, fd) == own_text &&
            address_by(&::getpeername, fd) == peer_text) {
            return ::shutdown(fd, SHUT_RDWR) == 0;
        }
    }
    return false;
}

SilentSockets::SilentSockets(core::Reactor& reactor, const sockaddr& listening)
    : reactor_(reactor), listening_(comparable(listening)), any_host_(has_any_host(listening_)) {}

SilentSockets::~SilentSockets() {
    if (spare_ >= 0) ::close(spare_);
    if (directory_ != nullptr) ::closedir(directory_);
}

Result<void> SilentSockets::open() {
    directory_ = ::opendir("/proc/self/fd");
    if (directory_ == nullptr) return std::unexpected(os_error(errno, "open /proc/self/fd"));
    spare_ = ::fcntl(::dirfd(directory_), F_DUPFD_CLOEXEC, 0);
    if (spare_ < 0) return std::unexpected(os_error(errno, "duplicate a descriptor"));
    return limit_reads();
}

// Accepted sockets inherit the timeout of the listening one.
Result<void> SilentSockets::limit_reads() {
    ::rewinddir(directory_);
    bool found = false;
    while (const dirent* const entry = ::readdir(directory_)) {
        const int fd = std::atoi(entry->d_name);
        int listens = 0;
        socklen_t size = sizeof listens;
        if (entry->d_name[0] == '.' || !is_ours(address_by(&::getsockname, fd)) ||
            ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
            continue;
        }
        if (::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kReadMax, sizeof kReadMax) != 0) {
            return std::unexpected(os_error(errno, "limit the time of reads"));
        }
        found = true;
    }
    if (!found) {
        return std::unexpected(Error{.code = Errc::kNotFound, .context = "the listening socket"});
    }
    return {};
}

SilentSockets::Visit SilentSockets::expect(const sockaddr& peer) {
    auto visit = std::make_shared<std::atomic<bool>>(true);
    visits_[comparable(peer)] = visit;
    return visit;
}

bool SilentSockets::expected(const std::string& peer) const {
    const auto found = visits_.find(peer);
    return found != visits_.end() && found->second->load(std::memory_order_acquire);
}

bool SilentSockets::is_ours(const std::string& local) const {
    if (local.size() != listening_.size()) return false;
    return any_host_ ? local.starts_with(listening_.substr(0, sizeof(in_port_t)))
                     : local == listening_;
}

bool SilentSockets::was_silent(const Suspect& suspect) const {
    const auto at = std::ranges::lower_bound(suspects_, suspect.fd, {}, &Suspect::fd);
    return at != suspects_.end() && *at == suspect;
}

// Whether the descriptor is a socket whose peer has sent no request.
bool SilentSockets::look(int fd, Suspect& suspect) const {
    if (!is_ours(address_by(&::getsockname, fd))) return false;
    // The listening socket has no peer.
    suspect.peer = address_by(&::getpeername, fd);
    if (suspect.peer.empty() || expected(suspect.peer)) return false;
    struct stat about{};
    if (::fstat(fd, &about) != 0) return false;
    suspect.fd = fd;
    suspect.inode = about.st_ino;
    return true;
}

Task<std::vector<SilentSockets::Suspect>> SilentSockets::find() {
    std::vector<Suspect> found;
    unsigned looked_at = 0;
    ::rewinddir(directory_);
    while (const dirent* const entry = ::readdir(directory_)) {
        const int fd = std::atoi(entry->d_name);
        Suspect suspect{};
        if (entry->d_name[0] != '.' && fd != spare_ && look(fd, suspect)) {
            found.push_back(std::move(suspect));
        }
        if (++looked_at % kDescriptorsPerTurn == 0) co_await reactor_.yield();
    }
    std::erase_if(visits_,
                  [](const auto& visit) { return !visit.second->load(std::memory_order_acquire); });
    std::ranges::sort(found, {}, &Suspect::fd);
    co_return found;
}

// The library closes the descriptor when it sees the end of the stream. It may have just done so,
// and the number may belong to another file by now; so this duplicates the descriptor, checks the
// duplicate, and shuts that down.
bool SilentSockets::end(const Suspect& suspect) const {
    if (::dup3(suspect.fd, spare_, O_CLOEXEC) < 0) return false;
    Suspect now{};
    const bool same = look(spare_, now) && now.inode == suspect.inode && now.peer == suspect.peer;
    const bool ended = same && ::shutdown(spare_, SHUT_RDWR) == 0;
    // Replaces the duplicate, but keeps its number reserved.
    ::dup3(::dirfd(directory_), spare_, O_CLOEXEC);
    return ended;
}

Task<std::uint32_t> SilentSockets::sweep() {
    std::vector<Suspect> found = co_await find();
    std::vector<Suspect> left;
    std::uint32_t ended = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (was_silent(found[i]) && end(found[i])) {
            ++ended;
            if (ended % kEndsPerTurn == 0) co_await reactor_.yield();
        } else {
            left.push_back(std::move(found[i]));
        }
    }
    suspects_ = std::move(left);
    co_return ended;
}

Task<std::uint32_t> SilentSockets::end_all() {
    const std::vector<Suspect> found = co_await find();
    std::uint32_t ended = 0;
    for (const Suspect& suspect : found) {
        if (end(suspect)) ++ended;
    }
    co_return ended;
}

}  // namespace fopd::fabric
