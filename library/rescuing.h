#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "library/medium_tasks.h"
#include "library/tape_library.h"
#include "store/copy.h"
#include "store/fid.h"
#include "store/tape/member.h"

namespace fopd::library {

// A copy that was found on a cartridge, with the description of its object on the tape.
struct TapeLibrary::FoundCopy {
    store::Member member{};
    store::Copy copy{};  // Its fid is the one on the tape.
};

// The pieces of an object that were found so far, while some are missing.
struct TapeLibrary::FoundPieces {
    store::Member member{};
    std::vector<store::Copy> copies{};

    void add(const store::Copy& copy);
    // The offset of the first byte that no found piece has.
    std::uint64_t first_missing() const;
};

// A rescue of a cartridge, from its begin or since the node was started. One rescue reads at a
// time.
struct TapeLibrary::Rescuing : MediumTask {
    std::string reason{};   // Why the cartridge has nothing that can be rescued.
    bool is_empty = false;  // The cartridge has no files of any node.
    std::uint64_t damaged_files = 0;
    std::optional<Error> stopped_by{};  // The error for which the homes take no more objects.
    std::vector<FoundCopy> batch{};     // The copies to make objects from next.
};

}  // namespace fopd::library
