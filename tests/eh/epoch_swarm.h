#pragma once

#include <cstdint>
#include <string>

#include "sim/epochs/epoch_world.h"

namespace fopd::eh::testing {

// A world of a few members whose participants and faults the seed draws. Returns what went wrong:
// the law that was broken, or who hangs after the last fault; empty: nothing.
struct SwarmResult {
    std::string wrong;
    std::uint64_t epochs = 0;
    std::uint64_t views = 0;
    std::uint64_t messages = 0;
    std::uint64_t trace = 0;
};
SwarmResult run_swarm(std::uint64_t seed);

// A world of members that reach the store, with a timeout of a second.
sim::EpochWorldOptions quick_world(std::size_t members);

}  // namespace fopd::eh::testing
