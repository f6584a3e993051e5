#pragma once

#include <cstdint>
#include <vector>

#include "store/extent.h"
#include "store/fid.h"

namespace fopd::store {

// An attempt to bring the bytes of a released object back to the disk. Remembers, in memory, which
// blocks are there. See Volume::begin_bringing_back().
class BringingBack {
public:
    BringingBack() = default;
    BringingBack(Fid fid, std::uint64_t content_version, std::uint64_t size_bytes)
        : fid_(fid), content_version_(content_version), size_bytes_(size_bytes) {}

    Fid fid() const { return fid_; }
    std::uint64_t content_version() const { return content_version_; }
    std::uint64_t size_bytes() const { return size_bytes_; }
    std::uint64_t blocks() const { return (size_bytes_ + 4095) / 4096; }

    // The range of blocks is there: in extents, or as holes.
    void add(BlockRange range);
    bool is_complete() const;
    // The first range that is missing; count is 0 if none is.
    BlockRange missing() const;

private:
    Fid fid_{};
    std::uint64_t content_version_ = 0;
    std::uint64_t size_bytes_ = 0;
    std::vector<BlockRange> there_;  // Ascending; they neither overlap nor touch.
};

}  // namespace fopd::store
