#pragma once

#include <expected>

#include "core/result.h"

namespace fopd::fop {

// What came from outside and is not what it has to be.
inline std::unexpected<Error> invalid(const char* why) {
    return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
}

}  // namespace fopd::fop
