#pragma once

#include <cstddef>

namespace fopd::core {

// Memory for coroutine frames. Each thread keeps freed frames by size, up to a limit, and reuses
// them without a lock; a frame freed on another thread goes to that thread's cache. Only addresses
// depend on the cache, no behaviour.
void* allocate_frame(std::size_t size_bytes);
void free_frame(void* frame, std::size_t size_bytes) noexcept;

// Whether freed frames are kept. Sanitizers must be able to check every frame, so that nothing is
// kept with them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kKeepsFrames = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kKeepsFrames = false;
#else
inline constexpr bool kKeepsFrames = true;
#endif
#else
inline constexpr bool kKeepsFrames = true;
#endif

// Base class of a coroutine promise whose frame is allocated from the cache.
struct CachedFrame {
    static void* operator new(std::size_t size_bytes) { return allocate_frame(size_bytes); }
    static void operator delete(void* frame, std::size_t size_bytes) noexcept {
        free_frame(frame, size_bytes);
    }
};

}  // namespace fopd::core
