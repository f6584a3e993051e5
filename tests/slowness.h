#pragma once

#include <algorithm>
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

// How many of so many seeds a test runs unless it is told a number: with a sanitizer fewer, but not
// fewer than four if there are so many, because swarms run each fourth seed twice. Builds
// without a sanitizer run all of them.
constexpr std::uint64_t few_of(std::uint64_t seeds) {
    constexpr std::uint64_t kFewest = 4;
    return std::max(std::min(seeds, kFewest), seeds / kSlowness);
}

}  // namespace fopd::testing
