#pragma once

#include <memory>

#include "core/clock.h"
#include "core/events.h"
#include "core/metrics.h"
#include "daemon/event_router.h"
#include "daemon/log.h"
#include "daemon/settings.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// The daemon's log and, if the configuration names a file for it, its audit trail.
class DaemonLogs {
public:
    // `clock` outlives the logs. Fails if a thread cannot be created, or if the trail's file cannot
    // be opened.
    static Started<std::unique_ptr<DaemonLogs>> start(const LogSettings& settings,
                                                      const core::Clock& clock);

    // Receives the events of all parts of the daemon, and routes each to the log or to the audit
    // trail.
    core::EventSink& events() { return router_; }
    // The metrics of the log: how many events it has dropped.
    const core::MetricSource& metrics() const { return *log_; }
    // The least level of the events that are written to the log. The audit trail has no level: all
    // of its events are written.
    core::Level level() const { return log_->level(); }
    void set_level(core::Level level) { log_->set_level(level); }

    // Log::flush() and Log::close(), for both logs.
    void flush(Duration limit);
    bool close();

private:
    DaemonLogs(std::unique_ptr<Log> log, std::unique_ptr<Log> audit);

    const std::unique_ptr<Log> log_;
    const std::unique_ptr<Log> audit_;  // Null: audit events go to log_.
    EventRouter router_;
};

}  // namespace fopd::daemon
