#pragma once

#include "core/io.h"

namespace fopd::core {

// Whether the file's contents are only in memory, so that I/O on it never waits for a device.
bool is_in_memory(int fd);

// Executes an operation on the calling thread and stores its result in it. Supports all operations
// except polls (EOPNOTSUPP).
void carry_out_at_once(IoOp& op);

}  // namespace fopd::core
