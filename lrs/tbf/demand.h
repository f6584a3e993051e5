#pragma once

#include <cstdint>

#include "core/time.h"
#include "lrs/classes/pace.h"
#include "lrs/tbf/cluster_part.h"

namespace fopd::lrs {

// The amount of one rate that a class wants, in units of the rate: the requests that arrived since
// the last count, and the requests that wait.
struct WantedAmount {
    std::uint64_t arrived = 0;
    std::uint64_t waiting = 0;
    std::uint64_t one = 0;  // The units that an average request takes.
};

// The demand of a class for one of its rates, as other nodes are told. A large change is told at
// once, a small one in steps. Shares must not follow every accident of arrival, because a share
// that grows can be used only an epoch later.
class SteadyDemand {
public:
    // The demand in parts of the rate; 0: the class wants nothing. Expects that as much arrives as
    // in the time `elapsed`, and that the waiting requests are to be served in the time `interval`.
    std::uint64_t next(const WantedAmount& wanted, const Pace& pace, Duration elapsed,
                       Duration interval);
    std::uint64_t told() const { return told_; }

private:
    std::uint64_t told_ = 0;
    // Whether the last demand was much less (-1) or much more (1) than the demand that was told.
    int side_ = 0;
};

}  // namespace fopd::lrs
