#pragma once

#include <cstddef>

namespace fopd::fabric {

// How much more a principal may take of something that has a limit: it holds `held`, and `left` is
// free. A principal may hold up to four times as much as is left: one that is alone gets most of
// it, and the next ones find some.
inline std::size_t share_room(std::size_t held, std::size_t left) {
    constexpr std::size_t kTimesTheRest = 4;
    const std::size_t most = kTimesTheRest * left;
    // Taking n also reduces `left` by n: held + n may be at most kTimesTheRest * (left - n).
    return held >= most ? 0 : (most - held + kTimesTheRest) / (kTimesTheRest + 1);
}

}  // namespace fopd::fabric
