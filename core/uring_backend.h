#pragma once

#include <memory>
#include <string>

#include "core/backend.h"
#include "core/clock.h"
#include "core/events.h"
#include "core/result.h"

namespace fopd::core {

struct UringOptions {
    std::uint32_t submission_entries = 512;
    std::uint32_t file_entries = 256;
    std::uint32_t region_entries = 64;
    // A kernel thread takes submissions without a system call; it occupies a core of its own.
    bool sqpoll = false;
};

// The real world's backend: one io_uring. Probes the kernel's features, and logs which are missing
// and what is used instead. May be created on any thread, and then belongs to the first thread that
// waits. Fails with kUnsupported or kNoSpace if no ring can be created.
Result<std::unique_ptr<Backend>> make_uring_backend(const Clock& clock, EventSink& events,
                                                    UringOptions options = {});

// The advice for the administrator after make_uring_backend() failed: names the sysctl, the
// container's filter or the limit that is responsible.
std::string explain_no_uring(const Error& error);

}  // namespace fopd::core
