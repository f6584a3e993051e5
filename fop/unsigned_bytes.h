#pragma once

#include <cstddef>
#include <span>

namespace fopd::fop {

// Bytes as libsodium takes them: what it reads, and what it fills.
inline const unsigned char* in(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline unsigned char* out(std::span<std::byte> bytes) {
    return reinterpret_cast<unsigned char*>(bytes.data());
}

}  // namespace fopd::fop
