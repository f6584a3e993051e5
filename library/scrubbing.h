#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "core/cancel.h"
#include "library/medium_work.h"
#include "library/tape_library.h"
#include "store/copy.h"

namespace fopd::library {

// A scrub of a cartridge. Kept after its end, so that administrators can ask for its result.
struct TapeLibrary::Scrubbing {
    CartridgeId id = 0;
    std::uint64_t number = 0;  // No two have the same.
    store::Cartridge on{};
    MediumWork work{};
    core::CancelSource cancel{};
    bool runs = true;
    bool has_turn = false;    // This scrub reads; one scrub does so at a time.
    store::CopyPlace from{};  // Copies before this place were read.
    // Failed attempts to read the copy at `from`, and the drives that made them.
    std::uint32_t tries = 0;
    std::set<std::string, std::less<>> drives{};
    std::uint32_t failures_in_turn = 0;      // Failed requests since the last copy that was read.
    std::optional<store::Copy> last_read{};  // The latest copy that a drive could read.
};

}  // namespace fopd::library
