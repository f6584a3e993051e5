#include "core/freed_memory.h"

#include <malloc.h>

namespace fopd::core {

void return_freed_memory() {
    ::malloc_trim(0);
}

}  // namespace fopd::core
