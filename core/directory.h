#pragma once

#include <string>

#include "core/owned_fd.h"
#include "core/result.h"

namespace fopd::core {

// The directory of the file at `path`; "." for a path without a slash.
std::string directory_of(const std::string& path);

// Opens a directory in order to lock or sync it. Negative if that fails, with the reason in errno.
OwnedFd open_directory(const std::string& path);

// Makes the names in a directory durable: after a power loss, a file that was made or renamed in it
// may otherwise be missing or have its old name. An error has the given context, a literal.
Result<void> sync_directory(const std::string& path, const char* context);

}  // namespace fopd::core
