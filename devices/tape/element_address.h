#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "devices/tape/changer.h"

namespace fopd::devices {

// The addresses of the first drive, exchange and storage element of virtual and simulated
// libraries.
inline constexpr std::uint32_t kDriveAddress = 1;
inline constexpr std::uint32_t kExchangeAddress = 1001;
inline constexpr std::uint32_t kStorageAddress = 2001;
// The most drives, and the most exchange elements.
inline constexpr std::uint32_t kElementsMax = 1000;
inline constexpr std::uint32_t kStorageMax = 10'000;

// How many elements of each kind a virtual or simulated library has.
struct ElementCounts {
    std::uint32_t drives = 2;
    std::uint32_t exchange = 2;
    std::uint32_t storage = 32;
};

// The elements of one kind.
struct ElementRange {
    LibraryElement::Kind kind;
    std::uint32_t first;  // The address of the first; the others follow.
    std::uint32_t count;

    bool has(std::uint32_t address) const { return address >= first && address - first < count; }
};

// Drives, exchange and storage elements: by address.
constexpr std::array<ElementRange, 3> element_ranges(const ElementCounts& counts) {
    using Kind = LibraryElement::Kind;
    return {
        ElementRange{.kind = Kind::kDrive, .first = kDriveAddress, .count = counts.drives},
        ElementRange{.kind = Kind::kExchange, .first = kExchangeAddress, .count = counts.exchange},
        ElementRange{.kind = Kind::kStorage, .first = kStorageAddress, .count = counts.storage}};
}

inline bool has_element(const ElementCounts& counts, std::uint32_t address) {
    return std::ranges::any_of(element_ranges(counts),
                               [address](const ElementRange& range) { return range.has(address); });
}

}  // namespace fopd::devices
