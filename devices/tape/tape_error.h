#pragma once

#include <cerrno>
#include <expected>
#include <utility>

#include "core/result.h"

namespace fopd::devices {

// The error value of a function that refuses or fails.
inline std::unexpected<Error> tape_refused(Errc code, const char* context) {
    return std::unexpected(Error{.code = code, .context = context});
}

// The error value for the errno of the system call that has just failed.
inline std::unexpected<Error> tape_os_error(const char* context) {
    return std::unexpected(os_error(errno, context));
}

// Joins the two results of a call on an offload: whether the call was made, and its own result. A
// full queue of the offload becomes kBusy, because kNoSpace would mean the end of the tape.
template <typename T>
Result<T> flat(Result<Result<T>> called) {
    if (!called) return tape_refused(Errc::kBusy, called.error().context);
    return std::move(*called);
}

}  // namespace fopd::devices
