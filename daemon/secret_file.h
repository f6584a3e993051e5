#pragma once

#include <string>

#include "daemon/start_problem.h"
#include "fop/key.h"

namespace fopd::daemon {

// What a regular file holds that its owner alone can read; root may let its group read it too. The
// message of a refusal names the file and never its contents. The caller wipes the text.
Started<std::string> read_secret_file(const std::string& path);

// Reads 64 hexadecimal digits, and white space around them or none, from such a file.
Started<fop::Key> read_key_file(const std::string& path);

}  // namespace fopd::daemon
