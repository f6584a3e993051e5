#pragma once

#include <cstdint>

#include "tests/sim/replayed_stage.h"

namespace fopd::sim::testing {

// Users of objects of a pool on tape, while the node, its drives and its robot fail as the seed
// says. Whether every promise was kept.
bool live_with_tapes(ReplayedStage& stage, std::uint64_t seed);
ObjectStageOptions options_with_tapes(std::uint64_t seed);

}  // namespace fopd::sim::testing
