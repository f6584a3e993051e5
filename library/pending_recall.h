#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "library/recall_job.h"
#include "library/tape_library.h"

namespace fopd::library {

// A recall that the library is to fulfil.
struct TapeLibrary::Recall : core::ListNode {
    Recall(const RecallJob::Parts& parts, std::uint32_t locality, RecallNote note)
        : job(parts, locality, std::move(note)) {}

    RecallJob job;  // Has the note.
    core::CancelSource cancel;
    CartridgeId cartridge = 0;  // Of the copy that is waited for.
    std::uint64_t offset = 0;   // Of that copy on the cartridge: the bytes that precede it.
    std::uint64_t arrival = 0;
    // As they were when the list was made last.
    static constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};
    std::uint32_t last_place = kNoPlace;  // It was not in the list.
    Instant last_end = kNever;            // It is not known.
    bool is_over = false;                 // At its home.
    std::optional<RecallNote> renewed{};  // Told since; to be served next.
};

}  // namespace fopd::library
