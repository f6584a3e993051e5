#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "devices/aligned_bytes.h"

namespace fopd::devices::testing {

// Memory for I/O, and what is in it.
class Blocks {
public:
    explicit Blocks(std::size_t count, std::uint8_t fill = 0) : bytes_(count) {
        std::memset(bytes_.data(), fill, bytes_.size_bytes());
    }

    core::Buffer buffer() const { return bytes_.buffer(); }
    std::span<std::byte> span() const { return bytes_.span(); }
    std::size_t size_bytes() const { return bytes_.size_bytes(); }
    // How many bytes are `value`.
    std::size_t count(std::uint8_t value) const {
        return static_cast<std::size_t>(std::ranges::count(span(), std::byte{value}));
    }
    bool all(std::uint8_t value) const { return count(value) == size_bytes(); }

private:
    AlignedBytes bytes_;
};

}  // namespace fopd::devices::testing
