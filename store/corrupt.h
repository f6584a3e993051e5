#pragma once

#include <expected>

#include "core/result.h"

namespace fopd::store {

// The error for content of a device that differs from the written content.
inline std::unexpected<Error> corrupt(const char* what) {
    return std::unexpected(Error{.code = Errc::kCorrupt, .context = what});
}

}  // namespace fopd::store
