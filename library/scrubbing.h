#pragma once

#include <cstdint>

#include "core/cancel.h"
#include "library/medium_work.h"
#include "library/tape_library.h"
#include "store/copy.h"

namespace fopd::library {

// A scrub of a cartridge, from its begin or since the node was started. Kept for those who ask what
// it has done.
struct TapeLibrary::Scrubbing {
    CartridgeId id = 0;
    store::Cartridge on{};
    MediumWork work{};
    core::CancelSource cancel{};
    bool runs = true;
    bool has_turn = false;    // Others wait for theirs.
    store::CopyPlace from{};  // Copies before it were read.
    std::uint32_t tries = 0;  // That the drives made to read the copy there.
};

}  // namespace fopd::library
