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
    std::uint32_t file_slots = 256;
    std::uint32_t region_slots = 64;
    // A kernel thread takes submissions without a system call, and a core for itself.
    bool sqpoll = false;
};

// The real world's backend: one io_uring. The kernel's features are probed: a line in the log says
// what is not to be had and what is used in its place. Made on any thread, then used by the one
// that waits first. Fails with kUnsupported or kNoSpace where there is no ring to be had at all.
Result<std::unique_ptr<Backend>> make_uring_backend(const Clock& clock, EventSink& events,
                                                    UringOptions options = {});

// What to tell the administrator when make_uring_backend() failed: names the sysctl, the
// container's filter or the limit that is in the way.
std::string explain_no_uring(const Error& error);

}  // namespace fopd::core
