#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "devices/tape/cartridge_text.h"

namespace fopd::devices {

// The files of a virtual library (docs/formats/virtual_library.md). All calls block, and belong on
// an Offload. `directory` is its path, `name` that of a cartridge's files.

std::string image_path(const std::string& directory, std::string_view name);
std::string cartridge_text_path(const std::string& directory, std::string_view name);

// The names of all cartridges, sorted.
Result<std::vector<std::string>> list_cartridges(const std::string& directory);
Result<CartridgeInfo> read_cartridge_text(const std::string& path);
// Puts a blank cartridge into the directory. kBusy: it has one of that name. kInvalid: no files may
// have that name.
Result<void> create_cartridge(const std::string& directory, std::string_view name,
                              const CartridgeInfo& info);

// Empty if no positions were written yet.
Result<CartridgePositions> read_positions(const std::string& directory);
// Replaces all positions durably. After a failure, the old positions are kept.
Result<void> write_positions(const std::string& directory, const CartridgePositions& positions);

// Differs after each start of the system. Empty: it cannot be read.
std::string read_boot_id();

}  // namespace fopd::devices
