#pragma once

#include <cstdint>
#include <memory>

#include "lrs/sorted_turns.h"

namespace fopd::lrs {

// Devices take turns, each in the order of its objects and their offsets, so that all devices are
// kept busy.
std::unique_ptr<Policy> make_trr(const SortedTurnsSettings& settings, std::uint64_t seed);

}  // namespace fopd::lrs
