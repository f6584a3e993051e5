#pragma once

#include <compare>
#include <cstdint>

namespace fopd::store {

// Names the log that holds an object's records, and with it the disk and the locality.
using Slot = std::uint16_t;

// The name of an object that never changes and is never used again. Its first 16 bits are its slot.
struct Fid {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    Slot slot() const { return static_cast<Slot>(high >> 48); }

    friend auto operator<=>(const Fid&, const Fid&) = default;
};

}  // namespace fopd::store
