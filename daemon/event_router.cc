#include "daemon/event_router.h"

#include <algorithm>
#include <array>

namespace fopd::daemon {

namespace {

constexpr std::string_view kAudit = "audit.";
// Reported by the trail itself, which cannot write it.
constexpr std::string_view kAuditLost = "audit.lost";
// Denials that the log has, too, because they show attacks and wrong keys.
constexpr std::array<std::string_view, 2> kInBoth{"fabric.session_refused", "daemon.keys_refused"};

}  // namespace

bool EventRouter::for_log(core::Level level, std::string_view name,
                          std::span<const core::Field> fields) {
    if (audit_ == nullptr || name == kAuditLost) return true;
    const bool is_audit = name.starts_with(kAudit);
    const bool is_in_both = std::ranges::find(kInBoth, name) != kInBoth.end();
    if (is_audit || is_in_both) audit_->emit_each(level, name, fields);
    return !is_audit;
}

void EventRouter::emit(core::Level level, std::string_view name,
                       std::span<const core::Field> fields) {
    if (for_log(level, name, fields)) log_.emit(level, name, fields);
}

void EventRouter::emit_each(core::Level level, std::string_view name,
                            std::span<const core::Field> fields) {
    if (for_log(level, name, fields)) log_.emit_each(level, name, fields);
}

}  // namespace fopd::daemon
