#pragma once

#include <string_view>

#include "config/problem.h"

namespace fopd::config {

// The largest file that is read, in bytes.
inline constexpr std::size_t kFileSizeMax = std::size_t{1} << 20;

// Refuses bytes that no configuration needs and that YAML parsers treat differently: invalid UTF-8,
// NULs, control characters, tabs, byte order marks, lone carriage returns and directives; also more
// than kFileSizeMax bytes. Reports one problem for each kind, at its first occurrence. Returns true
// if there is no problem.
bool check_text(std::string_view text, Problems& problems);

}  // namespace fopd::config
