#include "core/ensure.h"

#include <cstdio>
#include <cstdlib>

namespace fopd {

void ensure_failed(const char* expression, const char* file, int line) {
    std::fprintf(stderr, "fopd: broken promise at %s:%d: %s\n", file, line, expression);
    std::abort();
}

}  // namespace fopd
