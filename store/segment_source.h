#pragma once

#include <cstdint>

#include "core/result.h"

namespace fopd::store {

// Why a log asks for a segment: to have more room, or because it can free or clean nothing without
// another segment.
enum class SegmentNeed : std::uint8_t { kMore, kToGoOn };

// Owns the segments of a disk that do not belong to its log. Called on the log's reactor, never
// from within Log::begin(), data_done() or reserve().
class SegmentSource {
public:
    virtual ~SegmentSource() = default;
    // Gives the log a segment that no record up to Log::trusted() names; the log may overwrite it
    // at once. kNoSpace: there is none for that need.
    virtual Result<std::uint32_t> take_segment(SegmentNeed need) = 0;
    // The log returns a segment that no superblock names any more.
    virtual void give_back_segment(std::uint32_t segment) = 0;
};

}  // namespace fopd::store
