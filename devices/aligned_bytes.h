#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "core/io.h"
#include "devices/device.h"

namespace fopd::devices {

// Zeroed memory for device I/O: whole blocks, block-aligned. Used when a disk is opened; on the I/O
// path, memory comes from a core::BufferPool.
class AlignedBytes {
public:
    explicit AlignedBytes(std::size_t block_count)
        : size_bytes_(block_count * kBlockBytes), bytes_(allocate(size_bytes_)) {
        std::memset(bytes_.get(), 0, size_bytes_);
    }

    std::byte* data() const { return bytes_.get(); }
    std::size_t size_bytes() const { return size_bytes_; }
    std::span<std::byte> span() const { return {bytes_.get(), size_bytes_}; }
    core::Buffer buffer() const { return {.data = bytes_.get(), .size_bytes = size_bytes_}; }

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

}  // namespace fopd::devices
