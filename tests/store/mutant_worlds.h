#pragma once

#include <cstdint>
#include <string>

namespace fopd::store::testing {

// Runs what volume_crash_test.cc does with that seed: losses of power; starts without an index from
// a log that has come around; both; what is freed in steps; and copies on cartridges. Returns the
// first violated promise, or an empty text. This header includes nothing of the stage of volumes,
// so that a test of a mutant is compiled in a moment.
std::string violation_with(std::uint64_t seed);

}  // namespace fopd::store::testing
