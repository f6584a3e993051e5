#pragma once

#include <cstdint>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/object_map.h"

namespace fopd::store {

// Counts the blocks of an object over several turns, a bounded number of extents in each.
class BlockCounter {
public:
    // Both arguments outlive this object.
    BlockCounter(core::Reactor& reactor, ObjectMap& map) : reactor_(reactor), map_(map) {}

    // Whether blocks in cleared ranges are counted.
    enum class Which : std::uint8_t { kLiving, kAll };
    struct Options {
        Which which = Which::kLiving;
        std::uint32_t extents_a_turn = 0;
        core::WaitOptions wait{};
    };
    struct Counted {
        std::uint64_t blocks = 0;
        std::uint32_t turns = 0;
        std::uint32_t cleared = 0;  // Cleared ranges that were skipped.
    };
    // REQUIRES: the range of the object does not change meanwhile. kTimedOut, kCancelled.
    Task<Result<Counted>> count(Fid fid, BlockRange range, Options options);

private:
    Result<void> check_wanted(core::WaitOptions wait) const;

    core::Reactor& reactor_;
    ObjectMap& map_;
};

}  // namespace fopd::store
