#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fopd::devices {

// The description of a cartridge of a virtual or simulated library, beside its data. People edit it
// as text (docs/formats/virtual_library.md).
struct CartridgeInfo {
    static constexpr std::size_t kTextMax = 32;

    // The barcode on the outside; empty: there is none. Two cartridges may have the same barcode.
    std::string barcode = {};
    std::string technology = "lto9";
    std::string serial = {};
    std::uint64_t capacity_bytes = 0;  // 0: the capacity of its technology.
    bool write_protected = false;
    bool cleaning = false;

    friend bool operator==(const CartridgeInfo&, const CartridgeInfo&) = default;
};

// kInvalid: a line is invalid, or a key is unknown or occurs twice.
Result<CartridgeInfo> parse_cartridge(std::string_view text);
std::string format_cartridge(const CartridgeInfo& info);

// The cartridges in the elements of a library: the name of a cartridge's files by the address of
// its element.
using CartridgePositions = std::map<std::uint32_t, std::string>;

// Ignores invalid lines, and second lines for an element or a cartridge. The library finds a new
// element for a cartridge without one.
CartridgePositions parse_positions(std::string_view text);
std::string format_positions(const CartridgePositions& positions);

// Whether files may have this name: 1 to 64 letters, digits, '-', '_' and '.', but no '.' first.
bool is_cartridge_name(std::string_view name);

}  // namespace fopd::devices
