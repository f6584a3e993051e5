#pragma once

namespace fopd::testing {

// How many times as long as in other builds everything may take with the sanitizer that this
// program was built with. The deadlines of tests that run in real time are multiplied by it.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kSlowness = 5;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowness = 3;
#else
inline constexpr int kSlowness = 1;
#endif

}  // namespace fopd::testing
