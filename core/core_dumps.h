#pragma once

#include "core/result.h"

namespace fopd::core {

// From then on this process leaves no core dump, neither in a file nor with a program that the
// kernel would hand it to. Keys lie in the memory of sessions and on stacks, not in pages of their
// own that could be left out of a dump.
Result<void> forbid_core_dumps();

}  // namespace fopd::core
