#pragma once

#include <cstdint>

#include "core/time.h"
#include "lrs/classes/pace.h"
#include "lrs/tbf/cluster_part.h"

namespace fopd::lrs {

// The units of one rate that the requests of a class take: the requests that arrived since the last
// count, and those that wait.
struct WantedAmount {
    std::uint64_t arrived = 0;
    std::uint64_t waiting = 0;
    std::uint64_t one = 0;  // The units that an average request takes.
};

// The demand of a class for one of its rates, as it is told to other nodes: at once when it changes
// much, otherwise little by little. Shares that follow every accident of arrival would be lost:
// what grows is used an epoch later.
class SteadyDemand {
public:
    // In parts of the rate; 0: nothing is wanted. As much as arrived in `elapsed` is expected
    // again, and what waits should be served in `interval`.
    std::uint64_t next(const WantedAmount& wanted, const Pace& pace, Duration elapsed,
                       Duration interval);
    std::uint64_t told() const { return told_; }

private:
    std::uint64_t told_ = 0;
    int side_ = 0;  // The last one was much less (-1) or more (1) than what was told.
};

}  // namespace fopd::lrs
