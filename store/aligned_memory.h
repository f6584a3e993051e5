#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/io.h"
#include "core/result.h"

namespace fopd::store {

// Memory for I/O, allocated once when something is opened and never on the I/O path. Pages that are
// never touched cost nothing.
class AlignedMemory {
public:
    AlignedMemory() = default;

    // REQUIRES: whole blocks. kNoSpace: there is no memory.
    static Result<AlignedMemory> allocate(std::size_t size_bytes) {
        void* const bytes = std::aligned_alloc(4096, size_bytes);
        if (bytes == nullptr) {
            return std::unexpected(Error{.code = Errc::kNoSpace, .context = "memory for I/O"});
        }
        AlignedMemory memory;
        memory.bytes_.reset(static_cast<std::byte*>(bytes));
        memory.size_bytes_ = size_bytes;
        return memory;
    }

    std::span<std::byte> span() const { return {bytes_.get(), size_bytes_}; }
    core::Buffer buffer() const { return {.data = bytes_.get(), .size_bytes = size_bytes_}; }

private:
    struct Free {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    std::unique_ptr<std::byte, Free> bytes_;
    std::size_t size_bytes_ = 0;
};

}  // namespace fopd::store
