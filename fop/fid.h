#pragma once

#include <compare>
#include <cstdint>

namespace fopd::fop {

// The identifier of an object. Its highest 16 bits are the slot: the log that holds the object's
// records, and so its disk and locality. All zeros: no object.
struct Fid {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    constexpr std::uint16_t slot() const { return static_cast<std::uint16_t>(high >> 48); }
    constexpr bool is_set() const { return high != 0 || low != 0; }

    friend auto operator<=>(const Fid&, const Fid&) = default;
};

}  // namespace fopd::fop
