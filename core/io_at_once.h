#pragma once

#include "core/io.h"

namespace fopd::core {

// Whether what the file holds is in memory alone, so that reading and writing it never waits for a
// device.
bool is_in_memory(int fd);

// Carries out an operation in the calling thread, and leaves its result in it. All but a poll,
// which is refused (EOPNOTSUPP).
void carry_out_at_once(IoOp& op);

}  // namespace fopd::core
