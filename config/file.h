#pragma once

#include <expected>
#include <string>

#include "config/problem.h"

namespace fopd::config {

// What a regular file holds, at most the first kFileSizeMax + 1 bytes of it. Anything else (a
// directory, a pipe, a device) is refused unread, so this never waits.
std::expected<std::string, Mistake> read_file(const std::string& file_name);

}  // namespace fopd::config
