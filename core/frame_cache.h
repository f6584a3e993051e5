#pragma once

#include <cstddef>

namespace fopd::core {

// Memory for the frames of coroutines. A thread keeps what it gave back, by size and up to a limit,
// and takes it again without a lock; frames that travel to another thread end in that one's cache.
// Which memory a frame gets decides nothing else. Sanitizers watch every frame: for them nothing is
// kept, and keeps_frames() is false.
bool keeps_frames();
void* allocate_frame(std::size_t size_bytes);
void free_frame(void* frame, std::size_t size_bytes) noexcept;

// A base of a coroutine's promise whose frame comes from the cache.
struct CachedFrame {
    static void* operator new(std::size_t size_bytes) { return allocate_frame(size_bytes); }
    static void operator delete(void* frame, std::size_t size_bytes) noexcept {
        free_frame(frame, size_bytes);
    }
};

}  // namespace fopd::core
