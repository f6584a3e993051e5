#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace fopd::eh {

// The file of a view store, or of an incarnation, on a file system. Blocks: called on a thread of
// core::Offload.

// kNotFound if there is none.
Result<std::vector<std::byte>> read_view_file(const std::string& path);
// Durable when it returns: written beside, synced, renamed, and the directory synced. After an
// error the file has the old bytes or the new ones.
Result<void> replace_view_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace fopd::eh
