#pragma once

namespace fopd {

// Prints the failed expression and its location, and aborts.
[[noreturn]] void ensure_failed(const char* expression, const char* file, int line);

}  // namespace fopd

// An assertion about the program itself, checked in every build. Never used for input, peers,
// devices or memory: their failures are expected and are Results.
// Not named CHECK: Catch2 owns that macro.
#define ENSURE(expression)                                          \
    do {                                                            \
        if (!(expression)) [[unlikely]]                             \
            ::fopd::ensure_failed(#expression, __FILE__, __LINE__); \
    } while (false)
