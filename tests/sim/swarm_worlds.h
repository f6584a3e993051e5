#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fopd::sim::testing {

// Whole worlds of the swarms, for tests that only ask whether promises are kept. This header
// includes nothing of the simulated world, so that such a test is compiled in a moment.

// Runs the world of shared_objects.h with that seed. Returns whether every promise was kept.
bool keeps_shared_objects(std::uint64_t seed);
// Runs the world of tape_swarm.h with that seed. Returns the broken promise, if one was broken.
std::optional<std::string> broken_with_tapes(std::uint64_t seed);

}  // namespace fopd::sim::testing
