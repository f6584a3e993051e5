#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "fop/time_spent.h"

namespace fopd::fop {

// The names of the parts of a fop's time in logs and JSON, by SpentOn.
inline constexpr std::array<std::string_view, kSpentOnCount> kSpentNames{
    "total", "policy", "buffer", "lock", "client", "room", "disk_queue", "disk", "log", "locality"};
// The rest of the total.
inline constexpr std::string_view kComputedName = "server";

// The time that the server computed: the total without all named parts. `times` is a TimeSpent, or
// a sum of several.
template <typename Times>
Duration computed(const Times& times) {
    Duration rest = times.of(SpentOn::kTotal);
    for (std::size_t i = 1; i < kSpentOnCount; ++i) rest -= times.of(static_cast<SpentOn>(i));
    return std::max(rest, Duration::zero());
}

}  // namespace fopd::fop
