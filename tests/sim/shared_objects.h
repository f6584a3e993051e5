#pragma once

#include <cstdint>

#include "tests/sim/replayed_stage.h"

namespace fopd::sim::testing {

// Several clients at the same few objects, of which they write much buffered, while the node and
// they are killed, stopped and cut off, as the seed says. Whether every promise was kept.
bool share_objects(ReplayedStage& stage, std::uint64_t seed);
ObjectStageOptions options_to_share(std::uint64_t seed);

}  // namespace fopd::sim::testing
