// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <expected>
#include <string>

#include "fop/key.h"

namespace fopd::client {

// The key in a file of 64 hexadecimal digits, or why there is none, which names the file and quotes
// nothing of it. A file that others can read is refused.
std::expected<fop::Key, std::string> read_key_file(const std::string& path);

}  // namespace fopd::client
