#pragma once

#include "core/events.h"
#include "daemon/admin_server.h"

namespace fopd::daemon {

// The administration's part of the audit trail, as events audit.administration and audit.setting.

// Whether the trail has such requests: those that may change something or that take a backup.
bool is_audited(const AdminRequest& request);

// Writes that a request was begun which may take long.
void audit_begin(core::EventSink& events, const AdminRequest& request);

// Writes the caller, the request, its result and the settings that it changed to the audit trail. A
// signal is given as a request with its name as the path.
void audit(core::EventSink& events, const AdminRequest& request, const AdminReply& reply);

}  // namespace fopd::daemon
