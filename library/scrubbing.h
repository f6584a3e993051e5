#pragma once

#include <cstdint>

#include "core/cancel.h"
#include "library/medium_work.h"
#include "library/tape_library.h"
#include "store/copy.h"

namespace fopd::library {

// A scrub of a cartridge. Kept after its end, so that administrators can ask for its result.
struct TapeLibrary::Scrubbing {
    CartridgeId id = 0;
    store::Cartridge on{};
    MediumWork work{};
    core::CancelSource cancel{};
    bool runs = true;
    bool has_turn = false;    // This scrub reads; one scrub does so at a time.
    store::CopyPlace from{};  // Copies before this place were read.
    std::uint32_t tries = 0;  // Failed attempts to read the copy at `from`.
};

}  // namespace fopd::library
