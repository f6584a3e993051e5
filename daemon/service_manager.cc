#include "daemon/service_manager.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

namespace fopd::daemon {

namespace {

// Writes to the socket named in NOTIFY_SOCKET, as sd_notify(3) describes. sd_notify() itself blocks
// the control thread while the manager does not read and its queue is full; here a message that
// finds no room is sent with the next one, keeping the newest of each kind.
class SystemdManager final : public ServiceManager {
public:
    SystemdManager() {
        const char* const path = std::getenv("NOTIFY_SOCKET");
        if (path == nullptr) return;
        const std::size_t size = std::strlen(path);
        if (size < 2 || size >= sizeof(address_.sun_path)) return;
        if (path[0] != '/' && path[0] != '@') return;
        address_.sun_family = AF_UNIX;
        std::memcpy(address_.sun_path, path, size);
        if (path[0] == '@') address_.sun_path[0] = '\0';  // An abstract socket name.
        address_size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
        fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    ~SystemdManager() override {
        if (fd_ >= 0) ::close(fd_);
    }

    void ready() override { say(kState, "READY=1"); }
    void reloading() override { say(kState, "RELOADING=1"); }
    void stopping() override { say(kState, "STOPPING=1"); }
    void extend_timeout(Duration span) override {
        const auto span_us = std::chrono::ceil<std::chrono::microseconds>(span).count();
        say(kTimeout, "EXTEND_TIMEOUT_USEC=" + std::to_string(span_us));
    }
    void status(std::string_view line) override { say(kStatus, "STATUS=" + std::string(line)); }
    void feed_watchdog() override { say(kWatchdog, "WATCHDOG=1"); }
    Duration watchdog_timeout() const override {
        std::uint64_t timeout_us = 0;
        if (sd_watchdog_enabled(0, &timeout_us) <= 0) return Duration{0};
        return std::chrono::microseconds(timeout_us);
    }

private:
    enum Kind : std::size_t { kState, kTimeout, kStatus, kWatchdog, kKindsCount };

    void say(Kind kind, std::string assignment) {
        if (fd_ < 0) return;
        unsaid_[kind] = std::move(assignment);
        std::string message;
        for (const std::string& each : unsaid_) {
            if (!message.empty() && !each.empty()) message += '\n';
            message += each;
        }
        const ssize_t sent =
            ::sendto(fd_, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                     reinterpret_cast<const sockaddr*>(&address_), address_size_);
        // Any other failure means that nothing listens; the daemon works without it.
        if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return;
        unsaid_.fill({});
    }

    sockaddr_un address_{};
    socklen_t address_size_ = 0;
    int fd_ = -1;
    std::array<std::string, kKindsCount> unsaid_;
};

}  // namespace

std::unique_ptr<ServiceManager> make_systemd_manager() {
    return std::make_unique<SystemdManager>();
}

}  // namespace fopd::daemon
