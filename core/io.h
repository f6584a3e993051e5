#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fopd::core {

// The most bytes Linux transfers in one read or write; a larger request is cut to this size.
inline constexpr std::size_t kIoBytesMax = 0x7ffff000;

// An open file, and its entry in the ring's table of fixed files, if any. The code that opened the
// descriptor closes it, after Reactor::detach().
struct File {
    int fd = -1;
    std::int32_t entry = -1;
    bool in_memory = false;  // Reads and writes never block, and need no ring.
};

// Memory for I/O, and its registered region, if any. Borrowed: it must stay valid until the
// operation's await has returned, also if the operation is cancelled.
struct Buffer {
    std::byte* data = nullptr;
    std::size_t size_bytes = 0;
    std::int32_t region = -1;

    std::span<std::byte> span() const { return {data, size_bytes}; }
};

// For kGather, the operation's buffer is an array of `iovec`s that name the memory to write, and
// its size is their number.
enum class IoCode : std::uint8_t { kNop, kRead, kWrite, kGather, kSync, kSyncData, kPoll };

// An operation passed to a backend: filled in, submitted, and completed exactly once. Awaiters
// derive from it. It must not be moved or destroyed between submission and completion.
struct IoOp {
    using Complete = void (*)(IoOp&);

    explicit IoOp(Complete on_complete) : complete(on_complete) {}
    IoOp(const IoOp&) = delete;
    IoOp& operator=(const IoOp&) = delete;

    Complete complete;
    IoCode code = IoCode::kNop;
    bool in_flight = false;
    File file;
    Buffer buffer;
    std::uint64_t offset = 0;
    std::uint32_t poll_events = 0;
    std::int32_t result = 0;  // Bytes or poll events, or a negative errno.
    IoOp* next = nullptr;     // For the backend's own queues.
};

}  // namespace fopd::core
