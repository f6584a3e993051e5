// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/fopd.h"
#include "fabric/rpc/client.h"

namespace fopd::client {

// Not in libfopd: from now on, passes the parts of the time of each fop of the client to `to`, on
// the client's thread. It outlives the client. REQUIRES: fopd_options.explain.
void pass_times_on(fopd_client* client, fabric::TimesUser& to);

}  // namespace fopd::client
