#pragma once

#include <span>
#include <string_view>

#include "core/events.h"

namespace fopd::daemon {

// Divides the daemon's events between its log and its audit trail. The events audit.* go to the
// trail; without a trail, they go to the log like others. What is of interest in both goes to both.
// Thread-safe as far as the two are.
class EventRouter final : public core::EventSink {
public:
    // Both outlive the router. `audit` is null if the trail has no file of its own.
    EventRouter(core::EventSink& log, core::EventSink* audit) : log_(log), audit_(audit) {}

    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override;
    void emit_each(core::Level level, std::string_view name,
                   std::span<const core::Field> fields) override;
    // Events of the trail have the level kInfo, and are written whatever the log's level is.
    bool wants(core::Level level) const override {
        return log_.wants(level) || (audit_ != nullptr && level >= core::Level::kInfo);
    }

private:
    // Writes the event to the trail if it belongs there. Returns whether the log gets it, too.
    bool for_log(core::Level level, std::string_view name, std::span<const core::Field> fields);

    core::EventSink& log_;
    core::EventSink* const audit_;
};

}  // namespace fopd::daemon
