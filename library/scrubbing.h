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
    std::uint32_t failures_in_turn = 0;      // Requests that failed since a copy was last read.
    std::optional<store::Copy> last_read{};  // The last copy that was read successfully.
};

}  // namespace fopd::library
