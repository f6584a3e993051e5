#pragma once

#include <cstddef>
#include <span>

namespace fopd::fop {

// Convert byte spans to libsodium's pointer types for input and output.
inline const unsigned char* in(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline unsigned char* out(std::span<std::byte> bytes) {
    return reinterpret_cast<unsigned char*>(bytes.data());
}

}  // namespace fopd::fop
