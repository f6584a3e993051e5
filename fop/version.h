#pragma once

#include <cstdint>

namespace fopd::fop {

// 'fopd': the first bytes of connect data and of each message.
inline constexpr std::uint32_t kMagic = 0x64706f66;

// Another major version is another protocol. A newer minor one only adds: fields an older reader
// passes over, fops it answers with "unknown".
inline constexpr std::uint8_t kMajorVersion = 2;
inline constexpr std::uint8_t kMinorVersion = 0;

}  // namespace fopd::fop
