#pragma once

#include <cstddef>
#include <type_traits>

#include "core/ensure.h"

namespace fopd::core {

// Whole pages of zeros. The kernel gives memory to a page when it is first written, so a large
// table takes only the memory of the pages that are used. Null if there is no memory; errno says
// why.
void* map_zeros(std::size_t size_bytes);
void unmap_zeros(void* memory, std::size_t size_bytes);

// A fixed number of objects, in pages that take no memory until they are written.
// REQUIRES: an object whose bytes are all zero is a valid T, and equal to T().
template <typename T>
class ZeroedArray {
public:
    explicit ZeroedArray(std::size_t count)
        : items_(static_cast<T*>(map_zeros(count * sizeof(T)))), count_(count) {
        ENSURE(items_ != nullptr);
    }
    ~ZeroedArray() {
        static_assert(std::is_trivially_destructible_v<T>);
        unmap_zeros(items_, count_ * sizeof(T));
    }
    ZeroedArray(const ZeroedArray&) = delete;
    ZeroedArray& operator=(const ZeroedArray&) = delete;

    std::size_t size() const { return count_; }
    T* get() const { return items_; }
    T& operator[](std::size_t index) const { return items_[index]; }

private:
    T* const items_;
    const std::size_t count_;
};

}  // namespace fopd::core
