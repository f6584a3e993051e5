#pragma once

#include <cerrno>
#include <expected>

#include "core/result.h"

namespace fopd::devices {

// For a `return` or `co_return` of this folder.
inline std::unexpected<Error> tape_refused(Errc code, const char* context) {
    return std::unexpected(Error{.code = code, .context = context});
}

// Of the system call that has just failed.
inline std::unexpected<Error> tape_os_error(const char* context) {
    return std::unexpected(os_error(errno, context));
}

}  // namespace fopd::devices
