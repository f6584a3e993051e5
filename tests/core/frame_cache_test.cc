#include "core/frame_cache.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "tests/core/reactor_kinds.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {

Task<int> child(int value) {
    co_return value + 1;
}
Task<int> parent(int value) {
    const int result = co_await child(value);
    co_return result;
}

}  // namespace

TEST_CASE("core frame cache: what was given back is taken again", "[core]") {
    void* const first = allocate_frame(300);
    free_frame(first, 300);

    void* const second = allocate_frame(310);  // Of the same class.

    if (kKeepsFrames) CHECK(second == first);
    free_frame(second, 310);
}

TEST_CASE("core frame cache: frames of every size have their whole memory to themselves",
          "[core]") {
    struct Frame {
        unsigned char* memory;
        std::size_t size_bytes;
        unsigned char mark;
    };
    for (int round = 0; round < 3; ++round) {
        std::vector<Frame> frames;
        for (std::size_t size = 16; size < 5000; size += 16) {
            auto* const memory = static_cast<unsigned char*>(allocate_frame(size));
            const auto mark = static_cast<unsigned char>(size / 16);
            std::memset(memory, mark, size);
            frames.push_back({memory, size, mark});
        }
        for (const Frame& frame : frames) {
            CHECK(std::all_of(frame.memory, frame.memory + frame.size_bytes,
                              [&frame](unsigned char byte) { return byte == frame.mark; }));
            free_frame(frame.memory, frame.size_bytes);
        }
    }
}

TEST_CASE("core frame cache: more frames than are kept are each whole", "[core]") {
    constexpr std::size_t kSize = 1000;
    constexpr std::size_t kCount = 1000;
    std::vector<void*> frames;
    for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < kCount; ++i) frames.push_back(allocate_frame(kSize));
        CHECK(std::set(frames.begin(), frames.end()).size() == kCount);
        for (void* const frame : frames) free_frame(frame, kSize);
        frames.clear();
    }
}

TEST_CASE("core frame cache: coroutines run in frames that were used before", "[core]") {
    Harness harness(Kind::kVirtual);
    for (int i = 0; i < 100; ++i) {
        const int result = harness.run(parent(i));
        CHECK(result == i + 1);
    }
}
