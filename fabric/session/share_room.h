#pragma once

#include <cstddef>

namespace fopd::fabric {

// How much more of a limited resource a principal may take, if it holds `held` and `left` is free.
// A principal may hold up to four times as much as is free: a single principal gets most of the
// resource, and later ones still find some.
inline std::size_t share_room(std::size_t held, std::size_t left) {
    constexpr std::size_t kTimesTheRest = 4;
    const std::size_t most = kTimesTheRest * left;
    // Taking n also reduces `left` by n: held + n may be at most kTimesTheRest * (left - n).
    return held >= most ? 0 : (most - held + kTimesTheRest) / (kTimesTheRest + 1);
}

}  // namespace fopd::fabric
