#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fopd::fop {

// first, first + 1, ...: bytes that are easy to write down again elsewhere.
template <std::size_t Size>
std::array<std::byte, Size> counting_bytes(std::uint8_t first) {
    std::array<std::byte, Size> bytes;
    for (std::size_t i = 0; i < Size; ++i) bytes[i] = static_cast<std::byte>(first + i);
    return bytes;
}

}  // namespace fopd::fop
