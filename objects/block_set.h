#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/extent.h"

namespace fopd::objects {

// A set of blocks of an object.
class BlockSet {
public:
    bool empty() const { return ranges_.empty(); }
    std::uint64_t count() const;
    std::span<const store::BlockRange> ranges() const { return ranges_; }

    // Adds the blocks of the range, some of which may be in the set already.
    void add(store::BlockRange range);
    void add(const BlockSet& blocks) {
        for (const store::BlockRange& each : blocks.ranges_) add(each);
    }
    // Removes the blocks that both sets have, and returns them.
    BlockSet take(const BlockSet& blocks);

private:
    std::vector<store::BlockRange> ranges_;  // Ascending; they neither overlap nor touch.
};

}  // namespace fopd::objects
