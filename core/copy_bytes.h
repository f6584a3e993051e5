#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "core/ensure.h"

namespace fopd::core {

// Copies bytes to the front of memory that does not overlap with them. Large copies should use this
// instead of std::ranges::copy(), which becomes a memmove(): AddressSanitizer does that byte by
// byte.
inline void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
    ENSURE(from.size() <= to.size());
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace fopd::core
