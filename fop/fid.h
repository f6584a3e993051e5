#pragma once

#include <compare>
#include <cstdint>

namespace fopd::fop {

// An object as fops name it. Its first 16 bits are its slot: the log that holds its records, and
// with it the disk and the locality. Zero names nothing.
struct Fid {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    constexpr std::uint16_t slot() const { return static_cast<std::uint16_t>(high >> 48); }
    constexpr bool is_set() const { return high != 0 || low != 0; }

    friend auto operator<=>(const Fid&, const Fid&) = default;
};

}  // namespace fopd::fop
