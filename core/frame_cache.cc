#include "core/frame_cache.h"

#include <array>
#include <cstdint>
#include <new>

namespace fopd::core {

namespace {

// Frame sizes in a class differ by at most this; frames larger than the last class are not kept.
constexpr std::size_t kStepBytes = 64;
constexpr std::size_t kClassCount = 32;
// Frames of a class that a thread keeps: enough for concurrent tasks, and at most 4 MiB in all
// classes.
constexpr std::uint32_t kKeptMax = 128;

constexpr std::size_t class_of(std::size_t size_bytes) {
    return (size_bytes + kStepBytes - 1) / kStepBytes;
}

struct Kept {
    Kept* next;
};

// No constructor, so that it is usable from a thread's first instruction. A thread that ends frees
// all frames; frames freed on it even later, by destructors of statics, are not kept.
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
