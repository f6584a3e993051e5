#pragma once

#include <cstdint>

namespace fopd::store {

// Whose room a change may take, of a log and of the blocks for data. What adds leaves some for what
// frees, and both leave what cleaning needs, so that whatever is full can be emptied.
enum class Purpose : std::uint8_t {
    kAdding,
    // Deletes, truncates, punches, the sweep, forgetting replies: they give back what they take,
    // except for the recorded reply, and an extent record for each edge.
    kFreeing,
    kCleaning,
};

}  // namespace fopd::store
