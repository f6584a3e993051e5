#pragma once

#include <span>
#include <string_view>

#include "core/events.h"
#include "daemon/log.h"

namespace fopd::daemon {

// Divides the daemon's events between its log and its audit trail. The events audit.* go to the
// trail, or to the log if the trail has no file of its own. The log writes them whatever its level
// is, except audit.changed, which obeys the level. Some other events go to both. Thread-safe.
class EventRouter final : public core::EventSink {
public:
    // Both logs outlive the router. `audit` is null if the trail has no file of its own.
    EventRouter(Log& log, Log* audit) : log_(log), audit_(audit) {}

    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override;
    void emit_each(core::Level level, std::string_view name,
                   std::span<const core::Field> fields) override;
    // The audit trail's events have the level kInfo.
    bool wants(core::Level level) const override {
        return level >= core::Level::kInfo || log_.wants(level);
    }

private:
    void to_trail(core::Level level, std::string_view name, std::span<const core::Field> fields);

    Log& log_;
    Log* const audit_;
};

}  // namespace fopd::daemon
