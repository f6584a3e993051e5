#pragma once

#include <cstdint>

#include "core/task.h"
#include "fop/bodies.h"
#include "reqh/operation.h"
#include "reqh/refusal.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::reqh {

// Sets those attributes of the object that the request names; the object borrows the texts.
void set_attributes(const fop::SetAttributes& wanted, store::Object& object);

// All attributes of an object, which this locks while it reads them; texts are stored in the
// operation.
Task<Granted<fop::Attributes>> look_at_object(Operation* operation, store::Fid fid);

// The number of blocks of an object or upload. Takes several reactor turns if there are many;
// blocks that change meanwhile may or may not be counted.
Task<Granted<std::uint64_t>> count_blocks(Operation* operation, store::Fid fid);
// The blocks that count for the object's owner, also while the object is only on tape.
Task<Granted<std::uint64_t>> count_owned(Operation* operation, store::Fid fid);

}  // namespace fopd::reqh
