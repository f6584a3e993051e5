#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "fop/fid.h"

namespace fopd::fop {

// Without branches or table look-ups that depend on the bytes, because they may be secret.
std::string to_hex(std::span<const std::byte> bytes);
// A fid as users see it: 32 hexadecimal digits.
std::string to_hex(const Fid& fid);

// Fills `out` from 64 hexadecimal digits in either case, optionally followed by one newline.
// kInvalid with the reason as context; `out` is then zero.
Result<void> parse_hex(std::string_view text, std::span<std::byte, 32> out);

}  // namespace fopd::fop
