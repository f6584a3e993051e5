#pragma once

#include <cstdint>

namespace fopd::store {

// What a change is for decides how much room it leaves to others, in a log and of the blocks for
// data. Each purpose leaves room for all those after it, so that whatever is full can be emptied.
enum class Purpose : std::uint8_t {
    kAdding,
    // Truncates and punches that free more blocks than they write anew. What describes the object
    // may become more by them: a recorded reply, and an extent for each block written anew.
    kCutting,
    // Deletes, the sweep, forgetting recorded replies: they give back what they take.
    kFreeing,
    // What is committed again from the oldest segment of a log.
    kCleaning,
};

}  // namespace fopd::store
