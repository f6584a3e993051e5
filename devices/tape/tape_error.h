#pragma once

#include <cerrno>
#include <expected>
#include <utility>

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

// A call on an offload gives a result within one that says whether the call was made. No space in
// the offload's queue is not the end of a tape.
template <typename T>
Result<T> flat(Result<Result<T>> called) {
    if (!called) return tape_refused(Errc::kBusy, called.error().context);
    return std::move(*called);
}

}  // namespace fopd::devices
