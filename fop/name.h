#pragma once

#include <cstddef>
#include <string_view>

#include "core/result.h"

namespace fopd::fop {

inline constexpr std::size_t kObjectNameBytesMax = 480;

// Whether `name` may be the name of an object: 1 to 480 bytes of UTF-8 without control characters,
// compared as bytes. kInvalid with the reason as context. Code that displays a name must escape it:
// it may contain marks that change the direction of text.
Result<void> check_object_name(std::string_view name);

}  // namespace fopd::fop
