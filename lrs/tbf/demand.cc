#include "lrs/tbf/demand.h"

#include <algorithm>

namespace fopd::lrs {

namespace {

__extension__ using Wide = unsigned __int128;

// Less than a sixteenth and two requests is an accident, unless it is there twice.
constexpr std::uint64_t kAccidentParts = 16;
constexpr std::uint64_t kAccidentRequests = 2;
// A difference that may be an accident is followed in steps of an eighth.
constexpr std::int64_t kSteps = 8;

std::uint64_t demand_for(std::uint64_t amount, const Pace& pace, Duration span) {
    if (amount == 0) return 0;
    const Wide demand = static_cast<Wide>(pace.cost_of(amount)) * kWholeDemand /
                        static_cast<Wide>(span.count() * kTicksPerNs);
    return static_cast<std::uint64_t>(std::clamp<Wide>(demand, 1, kDemandMax));
}

}  // namespace

std::uint64_t SteadyDemand::next(const WantedAmount& wanted, const Pace& pace, Duration elapsed,
                                 Duration interval) {
    const std::uint64_t measured =
        std::min(kDemandMax, demand_for(wanted.arrived, pace, elapsed) +
                                 demand_for(wanted.waiting, pace, interval));
    if (measured == 0 || told_ == 0 || measured > 2 * told_ || measured < told_ / 2) {
        side_ = 0;
        return told_ = measured;
    }
    const std::uint64_t accident =
        told_ / kAccidentParts + kAccidentRequests * demand_for(wanted.one, pace, interval);
    const int side = measured > told_ + accident ? 1 : measured + accident < told_ ? -1 : 0;
    if (side != 0 && side == side_) {
        side_ = 0;
        return told_ = measured;
    }
    side_ = side;
    const auto missing = static_cast<std::int64_t>(measured) - static_cast<std::int64_t>(told_);
    told_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(told_) + missing / kSteps);
    return told_;
}

}  // namespace fopd::lrs
