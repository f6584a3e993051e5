// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/fopd.h"
#include "fabric/rpc/client.h"

namespace fopd::client {

// From now on, passes to `to` how the time of each fop of the client was spent, on the client's
// thread. `to` outlives the client. For fopctl only: libfopd does not export it. REQUIRES: the
// client was opened with fopd_options.explain.
void pass_times_on(fopd_client* client, fabric::TimesUser& to);

}  // namespace fopd::client
