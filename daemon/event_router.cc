#include "daemon/event_router.h"

#include <algorithm>
#include <array>

namespace fopd::daemon {

namespace {

constexpr std::string_view kAudit = "audit.";
// One for each change of an object, so these may be dropped when there are too many.
constexpr std::string_view kAuditChanged = "audit.changed";
// Reported by the trail itself, which cannot write it.
constexpr std::string_view kAuditLost = "audit.lost";
// Events written to both log and audit trail: start and end, refused sessions, refused keys.
constexpr std::array<std::string_view, 4> kInBoth{"daemon.start", "daemon.end",
                                                  "daemon.keys_refused", "fabric.session_refused"};

bool is_for_trail(std::string_view name) {
    return name.starts_with(kAudit) && name != kAuditLost;
}

bool is_in_both(std::string_view name) {
    return std::ranges::find(kInBoth, name) != kInBoth.end();
}

}  // namespace

void EventRouter::to_trail(core::Level level, std::string_view name,
                           std::span<const core::Field> fields) {
    Log& trail = audit_ == nullptr ? log_ : *audit_;
    if (name == kAuditChanged) return trail.emit_each(level, name, fields);
    trail.emit_always(level, name, fields);
}

void EventRouter::emit(core::Level level, std::string_view name,
                       std::span<const core::Field> fields) {
    if (is_for_trail(name)) return to_trail(level, name, fields);
    // A stranger can cause some of these events, so their rate is limited in the trail, too.
    if (audit_ != nullptr && is_in_both(name)) audit_->emit(level, name, fields);
    log_.emit(level, name, fields);
}

void EventRouter::emit_each(core::Level level, std::string_view name,
                            std::span<const core::Field> fields) {
    if (is_for_trail(name)) return to_trail(level, name, fields);
    if (audit_ != nullptr && is_in_both(name)) audit_->emit_each(level, name, fields);
    log_.emit_each(level, name, fields);
}

}  // namespace fopd::daemon
