#pragma once

#include <cstdint>

#include "core/task.h"
#include "fop/bodies.h"
#include "reqh/operation.h"
#include "reqh/refusal.h"
#include "store/fid.h"

namespace fopd::reqh {

// All there is to say of an object, which is locked for it; texts are the operation's.
Task<Granted<fop::Attributes>> look_at_object(Operation* operation, store::Fid fid);

// How many blocks an object or an upload has, several turns for many. What changes meanwhile is
// counted or not.
Task<Granted<std::uint64_t>> count_blocks(Operation* operation, store::Fid fid);

}  // namespace fopd::reqh
