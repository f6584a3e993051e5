#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace fopd::store {

// The number of a disk in its node; it selects the log and the locality of an object.
using Slot = std::uint16_t;

// The id of an object; it never changes and is never reused. Its first 16 bits are the slot.
//
// An object that a node has from the cartridges of another one may get another slot than it had
// there. Its next 16 bits are then its former slot and 1, otherwise zero. On tape an object always
// has the id with which it was made.
struct Fid {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    constexpr Slot slot() const { return static_cast<Slot>(high >> 48); }
    constexpr bool is_moved() const { return (high >> 32 & 0xffffU) != 0; }
    // The id with which the object was made.
    constexpr Fid origin() const {
        if (!is_moved()) return *this;
        const std::uint64_t slot = (high >> 32 & 0xffffU) - 1;
        return {.high = slot << 48 | (high & 0xffff'ffffU), .low = low};
    }
    // The id in another slot. Nothing: the last slot, or the id was moved already.
    constexpr std::optional<Fid> moved_to(Slot to) const {
        if (is_moved() || slot() == 0xffff) return std::nullopt;
        if (to == slot()) return *this;
        return Fid{.high = std::uint64_t{to} << 48 | (std::uint64_t{slot()} + 1) << 32 |
                           (high & 0xffff'ffffU),
                   .low = low};
    }

    friend auto operator<=>(const Fid&, const Fid&) = default;
};

}  // namespace fopd::store
