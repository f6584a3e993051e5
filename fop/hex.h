#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fopd::fop {

// Without branches or table look-ups that depend on the bytes.
std::string to_hex(std::span<const std::byte> bytes);

// Fills `out` from 64 hexadecimal digits in either case, perhaps with one newline behind. kInvalid
// with the reason as its context; `out` then holds zeros.
Result<void> parse_hex(std::string_view text, std::span<std::byte, 32> out);

}  // namespace fopd::fop
