#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "library/medium_tasks.h"
#include "library/tape_library.h"
#include "store/copy.h"

namespace fopd::library {

// A scrub of a cartridge. One scrub reads at a time.
struct TapeLibrary::Scrubbing : MediumTask {
    store::Cartridge on{};
    store::CopyPosition from{};  // Copies before this position were read.
    // Failed attempts to read the copy at `from`, and the drives that made them.
    std::uint32_t tries = 0;
    std::set<std::string, std::less<>> drives{};
    std::uint32_t failures_in_turn = 0;      // Failed requests since the last copy that was read.
    std::optional<store::Copy> last_read{};  // The latest copy that a drive could read.
};

}  // namespace fopd::library
