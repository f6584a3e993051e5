#pragma once

#include <string_view>

#include "config/problem.h"

namespace fopd::config {

// The largest file that is read, in bytes.
inline constexpr std::size_t kFileSizeMax = std::size_t{1} << 20;

// Refuses what no configuration needs and YAML parsers disagree about: invalid UTF-8, NULs, control
// characters, tabs, byte order marks, lone carriage returns, directives, and more than kFileSizeMax
// bytes. Reports one problem for each kind, at its first occurrence; true if there are none.
bool check_text(std::string_view text, Problems& problems);

}  // namespace fopd::config
