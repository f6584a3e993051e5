#pragma once

#include "core/reused_objects.h"
#include "reqh/operation.h"

namespace fopd::reqh {

// The operations of running foms. There may be many: a fom that waits for its client, or for
// another fop, does not count among those that may run.
using OperationPool = core::ReusedObjects<Operation>;

}  // namespace fopd::reqh
