#include "daemon/service_manager.h"

#include <string>

#include <systemd/sd-daemon.h>

namespace fopd::daemon {

namespace {

// sd_notify() fails when nobody listens; the daemon is no worse for it.
class SystemdManager final : public ServiceManager {
public:
    void ready() override { sd_notify(0, "READY=1"); }
    void reloading() override { sd_notify(0, "RELOADING=1"); }
    void stopping() override { sd_notify(0, "STOPPING=1"); }
    void status(std::string_view line) override {
        sd_notify(0, ("STATUS=" + std::string(line)).c_str());
    }
    void feed_watchdog() override { sd_notify(0, "WATCHDOG=1"); }
    Duration watchdog_timeout() const override {
        std::uint64_t timeout_us = 0;
        if (sd_watchdog_enabled(0, &timeout_us) <= 0) return Duration{0};
        return std::chrono::microseconds(timeout_us);
    }
};

}  // namespace

std::unique_ptr<ServiceManager> make_systemd_manager() {
    return std::make_unique<SystemdManager>();
}

}  // namespace fopd::daemon
