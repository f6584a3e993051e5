#include "fop/secret.h"

#include <sodium.h>

namespace fopd::fop {

void wipe(std::span<std::byte> bytes) {
    sodium_memzero(bytes.data(), bytes.size());
}

bool same_bytes(std::span<const std::byte> one, std::span<const std::byte> other) {
    if (one.size() != other.size()) return false;
    return sodium_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace fopd::fop
