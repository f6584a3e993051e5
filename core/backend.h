#pragma once

#include <span>

#include "core/io.h"
#include "core/result.h"
#include "core/time.h"

namespace fopd::core {

// A reactor's interface to the kernel, real or simulated: time, waiting, waking and I/O. Each
// reactor has its own backend and uses it on one thread; only wake() is thread-safe.
class Backend {
public:
    virtual ~Backend() = default;

    // The name for logs: "io_uring", "poll", "virtual".
    virtual const char* name() const = 0;

    virtual Instant now() = 0;

    // Starts an operation. Never fails: an operation that cannot be started completes with an
    // error. Every operation completes from within wait().
    virtual void submit(IoOp& op) = 0;
    // Requests cancellation of an operation in flight, which still completes exactly once.
    virtual void cancel(IoOp& op) = 0;

    // Drops an operation in flight whose coroutine frame is being destroyed. Only the simulated
    // backend can do this.
    virtual void abandon(IoOp& op) = 0;

    // Passes submitted operations to the kernel, waits until an operation has completed, wake() was
    // called or `until` is reached, and then calls the completions. Does not block when `until` has
    // passed.
    virtual void wait(Instant until) = 0;
    // True when wait() would find a completion without blocking; makes no system call.
    virtual bool has_completions() = 0;
    // Thread-safe. Ends the current wait, or else the next one.
    virtual void wake() = 0;

    // Register a descriptor, or a region of memory, with the kernel. The returned File or Buffer
    // carries its entry or region number. When no entry for a file is free, attach() returns a File
    // without one. attach_region() fails with kNoSpace when the memory lock limit is too small, and
    // with kUnsupported when the backend has no registered regions. Unless overridden, a backend
    // has neither entries nor regions.
    virtual Result<File> attach(int fd) { return File{.fd = fd}; }
    virtual void detach(const File& /*file*/) {}
    virtual Result<Buffer> attach_region(std::span<std::byte> /*memory*/) {
        return std::unexpected(Error{.code = Errc::kUnsupported, .context = "register buffers"});
    }
    virtual void detach_region(const Buffer& /*region*/) {}
};

}  // namespace fopd::core
