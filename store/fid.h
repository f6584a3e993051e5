#pragma once

#include <compare>
#include <cstdint>

namespace fopd::store {

// The number of a disk in its node; it selects the log and the locality of an object.
using Slot = std::uint16_t;

// The id of an object; it never changes and is never reused. Its first 16 bits are the slot.
struct Fid {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    Slot slot() const { return static_cast<Slot>(high >> 48); }

    friend auto operator<=>(const Fid&, const Fid&) = default;
};

}  // namespace fopd::store
