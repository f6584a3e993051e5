#pragma once

#include <memory>

#include "core/backend.h"
#include "core/clock.h"
#include "core/result.h"

namespace fopd::core {

// A backend for hosts without io_uring, where the client library must work too: poll(2) for
// descriptors, ordinary blocking reads and writes for files. Suitable for a program that reads its
// input from disk, not for a daemon.
Result<std::unique_ptr<Backend>> make_poll_backend(const Clock& clock);

}  // namespace fopd::core
