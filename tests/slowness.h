#pragma once

#include <cstdint>

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

// How many of so many seeds a test runs unless it is told a number. With a sanitizer fewer: it
// looks at what each of them does, and seeds that break a law are searched for with other builds.
constexpr std::uint64_t few_of(std::uint64_t seeds) {
    return kSlowness == 1 ? seeds : (seeds + kSlowness - 1) / kSlowness;
}

}  // namespace fopd::testing
