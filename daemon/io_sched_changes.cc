#include "daemon/io_sched_changes.h"

#include <utility>

namespace fopd::daemon {

IoSchedChanges::Outcome IoSchedChanges::set(std::span<const SectionValue> values) {
    if (auto ready = parts_.check_ready(); !ready) return std::unexpected(std::move(ready.error()));
    auto changed = parts_.configuration.set_io_sched(values);
    if (!changed) return changed;
    parts_.apply();
    for (const config::Change& each : *changed) {
        emit_each(parts_.events, core::Level::kInfo, "daemon.config_changed",
                  {{"key", std::string_view(each.path)}, {"by", "hand"}});
    }
    return changed;
}

}  // namespace fopd::daemon
