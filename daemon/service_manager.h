#pragma once

#include <memory>
#include <string_view>

#include "core/time.h"

namespace fopd::daemon {

// The service manager that started the daemon: systemd, none, or a test. Called on the control
// thread.
class ServiceManager {
public:
    virtual ~ServiceManager() = default;
    virtual void ready() = 0;
    virtual void reloading() = 0;
    virtual void stopping() = 0;
    // Extends the time that the service manager allows for a stop, if `span` is longer than its own
    // limit.
    virtual void extend_timeout(Duration span) = 0;
    // One line for `systemctl status`.
    virtual void status(std::string_view line) = 0;
    // Reports that all is well; called only while every locality's reactor runs.
    virtual void feed_watchdog() = 0;
    // How long it waits for feed_watchdog() before it ends the daemon; 0: no watchdog.
    virtual Duration watchdog_timeout() const = 0;
};

// sd_notify(3); does nothing when NOTIFY_SOCKET is not set.
std::unique_ptr<ServiceManager> make_systemd_manager();

}  // namespace fopd::daemon
