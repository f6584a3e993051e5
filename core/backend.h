#pragma once

#include <span>

#include "core/io.h"
#include "core/result.h"
#include "core/time.h"

namespace fopd::core {

// What a reactor needs from the world it runs in: time, waiting, waking and I/O. One reactor, one
// backend, one thread; only wake() may be called from others.
class Backend {
public:
    virtual ~Backend() = default;

    // The word for logs: "io_uring", "poll", "virtual".
    virtual const char* name() const = 0;

    virtual Instant now() = 0;

    // Starts an operation. Never fails: what cannot be started completes with an error. Completes
    // it from within wait().
    virtual void submit(IoOp& op) = 0;
    // Asks for an early end of an operation in flight, which then still completes exactly once.
    virtual void cancel(IoOp& op) = 0;

    // Forgets an operation in flight, whose frame is being destroyed. Only a simulated kernel can.
    virtual void abandon(IoOp& op) = 0;

    // Gives the kernel what was submitted, waits until something completed, somebody called wake(),
    // or `until` has come, and completes what is done. Does not wait when `until` has passed.
    virtual void wait(Instant until) = 0;
    // True when wait() would find something done at once; costs no system call.
    virtual bool has_completions() = 0;
    // From any thread: ends the wait under way, or the next one.
    virtual void wake() = 0;

    // Registers a descriptor, or a region of memory, with the kernel. Both return what was given
    // with its place filled in. A kernel that has no room for files gives a plain File. Regions are
    // not pinned when the memory lock limit is too small (kNoSpace) or the backend has none
    // (kUnsupported).
    virtual Result<File> attach(int fd) = 0;
    virtual void detach(const File& file) = 0;
    virtual Result<Buffer> attach_region(std::span<std::byte> memory) = 0;
    virtual void detach_region(const Buffer& region) = 0;
};

}  // namespace fopd::core
