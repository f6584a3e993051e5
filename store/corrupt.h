#pragma once

#include <expected>

#include "core/result.h"

namespace fopd::store {

// What lies on a medium is not what was written there.
inline std::unexpected<Error> corrupt(const char* what) {
    return std::unexpected(Error{.code = Errc::kCorrupt, .context = what});
}

}  // namespace fopd::store
