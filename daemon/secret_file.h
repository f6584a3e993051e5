#pragma once

#include <string>

#include "daemon/start_problem.h"
#include "fop/key.h"

namespace fopd::daemon {

// Reads a regular file that only its owner can read; a file of root may also be readable by its
// group. A refusal's message names the file and never its contents. The caller wipes the text.
Started<std::string> read_secret_file(const std::string& path);

// Reads 64 hexadecimal digits, with optional white space around them, from such a file.
Started<fop::Key> read_key_file(const std::string& path);

}  // namespace fopd::daemon
