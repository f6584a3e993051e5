#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "core/result.h"

namespace fopd::daemon {

// Modes of files and directories that the daemon creates: files are readable by all, but
// directories can be entered only by the daemon's own user.
constexpr mode_t kFileMode = 0644;
constexpr mode_t kDirectoryMode = 0700;

// Reads a whole small file. kNotFound; kInvalid: not a regular file, or larger than 1 MiB.
Result<std::string> read_small_file(const std::string& path);

// Replaces the file, if any, by `text`, atomically: a crash leaves the old file or the new one.
// Durable on return. The file gets `mode` whatever the umask is.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace fopd::daemon
