#pragma once

#include "core/events.h"
#include "daemon/admin_server.h"

namespace fopd::daemon {

// The administration's part of the audit trail, as events audit.administration and audit.setting.

// Whether the request is written to the audit trail: it may change something or takes a backup.
bool is_audited(const AdminRequest& request);

// Records the start of a request that may take long.
void audit_begin(core::EventSink& events, const AdminRequest& request);

// Writes the caller, the request, its result and the settings that it changed to the audit trail. A
// signal is a request whose path is the signal's name.
void audit(core::EventSink& events, const AdminRequest& request, const AdminReply& reply);

}  // namespace fopd::daemon
