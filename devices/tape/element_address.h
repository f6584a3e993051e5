#pragma once

#include <cstdint>

namespace fopd::devices {

// The addresses of the first drive, exchange and storage element of virtual and simulated
// libraries.
inline constexpr std::uint32_t kDriveAddress = 1;
inline constexpr std::uint32_t kExchangeAddress = 1001;
inline constexpr std::uint32_t kStorageAddress = 2001;
// Of each kind.
inline constexpr std::uint32_t kElementsMax = 1000;

}  // namespace fopd::devices
