#pragma once

#include <cstdint>

namespace fopd::fop {

// 'fopd': the first bytes of connect data and of each message.
inline constexpr std::uint32_t kMagic = 0x64706f66;

// A different major version is a different protocol. A newer minor version only adds fields, which
// an older reader ignores, and fops, which it answers with "unknown".
inline constexpr std::uint8_t kMajorVersion = 2;
inline constexpr std::uint8_t kMinorVersion = 0;

}  // namespace fopd::fop
