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

// A copy that was found on a cartridge, with all that the tape says of its object.
struct TapeLibrary::FoundCopy {
    store::Member member{};
    store::Copy copy{};  // Its fid is that of the tape.
};

// The pieces of an object that were found so far: not yet all.
struct TapeLibrary::FoundPieces {
    store::Member member{};
    std::vector<store::Copy> copies{};

    void add(const store::Copy& copy);
    // Where the first byte is that no piece has.
    std::uint64_t first_missing() const;
};

// A rescue of a cartridge, from its begin or since the node was started. One rescue reads at a
// time.
struct TapeLibrary::Rescuing : MediumTask {
    std::string reason{};   // Why the cartridge has nothing that can be rescued.
    bool is_empty = false;  // It has no files of any node.
    std::uint64_t damaged_files = 0;
    std::optional<Error> stopped_by{};  // The homes took no more.
    std::vector<FoundCopy> batch{};     // To be taken over next.
};

}  // namespace fopd::library
