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
    // For a stop, in place of the time that it gives by itself, if that is longer.
    virtual void extend_timeout(Duration span) = 0;
    // One line for `systemctl status`.
    virtual void status(std::string_view line) = 0;
    // "All is well": only while every locality turns.
    virtual void feed_watchdog() = 0;
    // How long it waits for that before it ends the daemon; 0 when it does not watch.
    virtual Duration watchdog_timeout() const = 0;
};

// sd_notify(3); does nothing when NOTIFY_SOCKET is not set.
std::unique_ptr<ServiceManager> make_systemd_manager();

}  // namespace fopd::daemon
