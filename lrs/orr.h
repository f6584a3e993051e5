#pragma once

#include <cstdint>
#include <memory>

#include "lrs/sorted_turns.h"

namespace fopd::lrs {

// Objects take turns, each in the order of its offsets: a large object that is read by any number
// of clients is read sequentially.
std::unique_ptr<Policy> make_orr(const SortedTurnsSettings& settings, std::uint64_t seed);

}  // namespace fopd::lrs
