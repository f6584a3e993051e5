#pragma once

#include <algorithm>
#include <cstddef>

#include "tests/eh/epoch_swarm.h"

namespace fopd::eh::testing {

// How many calls of a member have ended with an error.
inline std::size_t errors_in(const sim::EpochWorld& world, std::size_t member) {
    const auto& answers = world.answers(member);
    return static_cast<std::size_t>(
        std::ranges::count_if(answers, [](const auto& answer) { return !answer.has_value(); }));
}

// Members 0 to `members` - 1 take part from now on, as EpochWorld::run_participant() says.
inline void run_all(sim::EpochWorld& world, std::size_t members, Duration think) {
    for (std::size_t i = 0; i < members; ++i) world.run_participant(i, think);
}

}  // namespace fopd::eh::testing
