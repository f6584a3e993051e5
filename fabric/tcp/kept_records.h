#pragma once

#include <string>

#include "fabric/host_shares.h"

namespace fopd::fabric {

struct NoData {};
// The places of connections that keep encrypted records of writes that were given up, until the
// records are sent. The key is the principal.
using KeptRecords = HostShares<std::string, NoData>;

}  // namespace fopd::fabric
