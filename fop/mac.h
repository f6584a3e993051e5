#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "fop/key.h"

namespace fopd::fop {

// A message authentication code: proves that the sender of some bytes holds the key. Compared in
// constant time.
struct Mac128 {
    std::array<std::byte, 16> bytes;

    friend bool operator==(const Mac128& one, const Mac128& other) {
        return same_bytes(one.bytes, other.bytes);
    }
};

// The MAC over both parts, as if concatenated. Allocates nothing.
Mac128 mac(const MacKey& key, std::span<const std::byte> first,
           std::span<const std::byte> second = {});

}  // namespace fopd::fop
