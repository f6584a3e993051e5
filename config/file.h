#pragma once

#include <expected>
#include <string>

#include "config/problem.h"

namespace fopd::config {

// The contents of a regular file, at most kFileSizeMax + 1 bytes. Anything else (a directory, a
// pipe, a device) is refused without reading, so this never blocks.
std::expected<std::string, Mistake> read_file(const std::string& file_name);

}  // namespace fopd::config
