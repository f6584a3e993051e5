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

    // The label on the outside; empty: there is none. Two cartridges may have the same.
    std::string barcode = {};
    std::string technology = "lto9";
    std::string serial = {};
    std::uint64_t capacity_bytes = 0;  // 0: that of its technology.
    bool write_protected = false;
    bool cleaning = false;

    friend bool operator==(const CartridgeInfo&, const CartridgeInfo&) = default;
};

// kInvalid if a line is wrong, or a key unknown or there twice.
Result<CartridgeInfo> parse_cartridge(std::string_view text);
std::string format_cartridge(const CartridgeInfo& info);

// The cartridges in the elements of a library, by their address; each by the name of its files.
using CartridgePositions = std::map<std::uint32_t, std::string>;

// Lines that are wrong count as missing, and so do second ones of an element or a cartridge: the
// library finds a new element for a cartridge without one.
CartridgePositions parse_positions(std::string_view text);
std::string format_positions(const CartridgePositions& positions);

// Whether files may have this name: 1 to 64 letters, digits, '-', '_' and '.', but no '.' first.
bool is_cartridge_name(std::string_view name);

}  // namespace fopd::devices
