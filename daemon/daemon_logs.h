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
    // The metric of the log: how many events it has dropped. The audit trail has no metric; the
    // log gets an event fopd.audit.lost with the number of events that the trail has dropped.
    const core::MetricSource& metrics() const { return *log_; }
    // The least level of the events that are written to the log. An audit trail with a file of its
    // own writes events of all levels. Without such a file, audit events are written to the log
    // whatever its level is, except audit.changed, which obeys the level.
    core::Level level() const { return log_->level(); }
    void set_level(core::Level level) { log_->set_level(level); }

    // Waits until all events emitted so far are written, for at most `limit` in the audit trail and
    // then for at most `limit` in the log.
    void flush(Duration limit);
    // Writes all queued events and ends the threads. REQUIRES: nothing is emitted afterwards.
    // False: a thread does not end, and the process must exit without destroying the logs.
    bool close();

private:
    DaemonLogs(std::unique_ptr<Log> log, std::unique_ptr<Log> audit);

    const std::unique_ptr<Log> log_;
    const std::unique_ptr<Log> audit_;  // Null: log_ gets the audit events.
    EventRouter router_;
};

}  // namespace fopd::daemon
