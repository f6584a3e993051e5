#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "core/result.h"

namespace fopd::daemon {

// Of what the daemon makes for itself: all may read its files, and none but itself finds them.
constexpr mode_t kFileMode = 0644;
constexpr mode_t kDirectoryMode = 0700;

// A small regular file as a whole; kNotFound, kInvalid for something else or more than 1 MiB.
Result<std::string> read_small_file(const std::string& path);

// Puts `text` into the place of whatever was there, at once: a crash leaves the old file or the
// new one. Durable when it returns. Has `mode` whatever the umask says.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode);

// What was renamed in it, or made, is durable when it returns.
Result<void> sync_directory(const std::string& path);

}  // namespace fopd::daemon
