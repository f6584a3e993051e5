#pragma once

#include <cstdint>

namespace fopd::store {

// The purpose of a change decides how much room it leaves to other changes, in the log and in the
// blocks for data. Each purpose leaves room for those after it, so that a full disk can be emptied.
enum class Purpose : std::uint8_t {
    kAdding,
    // Truncates and punches that free more blocks than they write. They may add records: a recorded
    // reply, and an extent for each block written.
    kCutting,
    // Removals, the sweep, forgetting of recorded replies: they return all room that they take.
    kFreeing,
    // Live records of the oldest segment of the log.
    kCleaning,
};

}  // namespace fopd::store
