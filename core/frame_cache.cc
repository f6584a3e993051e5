#include "core/frame_cache.h"

#include <array>
#include <cstdint>
#include <new>

namespace fopd::core {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsFrames = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kKeepsFrames = false;
#else
constexpr bool kKeepsFrames = true;
#endif
#else
constexpr bool kKeepsFrames = true;
#endif

// Frames differ by at most this within a class; larger ones than the last class are not kept.
constexpr std::size_t kStepBytes = 64;
constexpr std::size_t kClassCount = 32;
// What a thread keeps of a class: enough for what runs at a time, and 4 MiB of all classes at most.
constexpr std::uint32_t kKeptMax = 128;

constexpr std::size_t class_of(std::size_t size_bytes) {
    return (size_bytes + kStepBytes - 1) / kStepBytes;
}

struct Kept {
    Kept* next;
};

// No constructor: to be there from a thread's first instruction on. A thread that ends gives all
// back; what ends on it still later, from destructors of statics, is not kept.
struct Cache {
    ~Cache() {
        is_closed = true;
        for (std::size_t index = 0; index < kClassCount; ++index) {
            while (Kept* const frame = heads[index]) {
                heads[index] = frame->next;
                ::operator delete(frame);
            }
        }
    }

    std::array<Kept*, kClassCount> heads{};
    std::array<std::uint32_t, kClassCount> counts{};
    bool is_closed = false;
};

constinit thread_local Cache cache;

}  // namespace

bool keeps_frames() {
    return kKeepsFrames;
}

void* allocate_frame(std::size_t size_bytes) {
    const std::size_t index = class_of(size_bytes);
    if (!kKeepsFrames || index >= kClassCount) return ::operator new(size_bytes);
    Cache& here = cache;
    Kept* const frame = here.heads[index];
    if (frame == nullptr) return ::operator new(index * kStepBytes);
    here.heads[index] = frame->next;
    --here.counts[index];
    return frame;
}

void free_frame(void* frame, std::size_t size_bytes) noexcept {
    const std::size_t index = class_of(size_bytes);
    Cache& here = cache;
    const bool keep =
        kKeepsFrames && index < kClassCount && !here.is_closed && here.counts[index] < kKeptMax;
    if (!keep) {
        ::operator delete(frame);
        return;
    }
    here.heads[index] = new (frame) Kept{here.heads[index]};
    ++here.counts[index];
}

}  // namespace fopd::core
