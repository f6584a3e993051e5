#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "core/io.h"
#include "devices/device.h"

namespace fopd::devices::testing {

// Memory a device can do I/O with: whole blocks, aligned to one.
class Blocks {
public:
    explicit Blocks(std::size_t count, std::uint8_t fill = 0)
        : size_bytes_(count * kBlockBytes), bytes_(allocate(size_bytes_)) {
        std::memset(bytes_.get(), fill, size_bytes_);
    }

    core::Buffer buffer() const { return {.data = bytes_.get(), .size_bytes = size_bytes_}; }
    std::span<std::byte> span() const { return buffer().span(); }
    std::size_t size_bytes() const { return size_bytes_; }
    // How many bytes are `value`.
    std::size_t count(std::uint8_t value) const {
        return static_cast<std::size_t>(std::ranges::count(span(), std::byte{value}));
    }
    bool all(std::uint8_t value) const { return count(value) == size_bytes_; }

private:
    struct Free {
        void operator()(std::byte* bytes) const {
            ::operator delete(bytes, std::align_val_t{kBlockBytes});
        }
    };
    static std::unique_ptr<std::byte, Free> allocate(std::size_t size_bytes) {
        return std::unique_ptr<std::byte, Free>(
            static_cast<std::byte*>(::operator new(size_bytes, std::align_val_t{kBlockBytes})));
    }

    std::size_t size_bytes_;
    std::unique_ptr<std::byte, Free> bytes_;
};

}  // namespace fopd::devices::testing
