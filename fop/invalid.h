#pragma once

#include <expected>

#include "core/result.h"

namespace fopd::fop {

// The error for invalid data from outside.
inline std::unexpected<Error> invalid(const char* why) {
    return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
}

}  // namespace fopd::fop
