#include "core/zeroed_array.h"

#include <sys/mman.h>

namespace fopd::core {

void* map_zeros(std::size_t size_bytes) {
    void* const memory =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_zeros(void* memory, std::size_t size_bytes) {
    ::munmap(memory, size_bytes);
}

}  // namespace fopd::core
