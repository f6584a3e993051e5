#include "daemon/daemon_logs.h"

#include <cstring>
#include <utility>

#include "daemon/log_writer.h"

namespace fopd::daemon {

namespace {

LogFormat log_format(const LogSettings& settings) {
    if (settings.format.has_value()) return *settings.format;
    return stderr_is_journal() ? LogFormat::kJournald : LogFormat::kText;
}

}  // namespace

Started<std::unique_ptr<DaemonLogs>> DaemonLogs::start(const LogSettings& settings,
                                                       const core::Clock& clock) {
    auto log = Log::start({.level = settings.level, .format = log_format(settings)}, clock);
    if (!log) return std::unexpected(std::move(log.error()));
    std::unique_ptr<Log> audit;
    if (settings.audit) {
        auto writer = FileWriter::open(*settings.audit);
        if (!writer) {
            return std::unexpected(
                StartProblem{.exit_code = kExitDataDir,
                             .message = "log.audit: " + *settings.audit +
                                        " cannot be opened: " + std::strerror(writer.error())});
        }
        auto trail = Log::start({.level = core::Level::kTrace,
                                 .format = LogFormat::kJson,
                                 .writer = *std::move(writer),
                                 .losses = log->get()},
                                clock);
        if (!trail) return std::unexpected(std::move(trail.error()));
        audit = *std::move(trail);
    }
    return std::unique_ptr<DaemonLogs>(new DaemonLogs(*std::move(log), std::move(audit)));
}

DaemonLogs::DaemonLogs(std::unique_ptr<Log> log, std::unique_ptr<Log> audit)
    : log_(std::move(log)), audit_(std::move(audit)), router_(*log_, audit_.get()) {}

void DaemonLogs::flush(Duration limit) {
    if (audit_ != nullptr) audit_->flush(limit);
    log_->flush(limit);
}

// The trail first, because its lost events are reported in the log.
bool DaemonLogs::close() {
    const bool is_audit_closed = audit_ == nullptr || audit_->close();
    return log_->close() && is_audit_closed;
}

}  // namespace fopd::daemon
