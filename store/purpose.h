#pragma once

#include <cstdint>

namespace fopd::store {

// Whose room a change may take, of a log and of the blocks for data. What adds leaves some for what
// frees, and both leave what cleaning needs, so that whatever is full can be emptied.
enum class Purpose : std::uint8_t {
    kAdding,
    kFreeing,  // In the end no more is used than before, but for a few bytes.
    kCleaning,
};

}  // namespace fopd::store
