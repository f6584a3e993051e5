#pragma once

#include "core/result.h"

namespace fopd::core {

// Disables core dumps of this process, both to a file and to a core_pattern program. Secret keys
// are on stacks and in session objects, so they cannot be excluded from a dump page by page.
Result<void> forbid_core_dumps();

}  // namespace fopd::core
