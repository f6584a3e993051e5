#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/layered_index.h"
#include "store/object.h"

namespace fopd::store {

// The cleared ranges of objects in the index. A cleared range reads as a hole, while its extents
// still have blocks that are to be freed. Cleared::end is the block after the range. Ranges of an
// object that exists neither overlap nor touch each other. Part of ObjectMap.
class ClearedRanges {
public:
    // REQUIRES: `index` outlives the ClearedRanges.
    explicit ClearedRanges(LayeredIndex& index) : index_(index) {}

    // Returns the first cleared range of the object that contains block `from` or lies behind it.
    Result<std::optional<Cleared>> next(Fid fid, std::uint64_t from);

    // Finds the cleared ranges of the object that overlap `range`. found() returns them in
    // ascending order, until the next call of find() or add().
    Result<void> find(Fid fid, BlockRange range);
    const std::vector<Cleared>& found() const { return found_; }
    // Removes the blocks of `range` from the cleared ranges in the index; found() stays as it was.
    // REQUIRES: find() was called before with the same `range`, and no cleared range has changed
    // since.
    void cut(BlockRange range);

    // Adds a cleared range to the index, and joins it with the cleared ranges of the object that it
    // overlaps or touches.
    Result<void> add(Fid fid, BlockRange range);
    // Adds a cleared range of all possible blocks of an object that is removed.
    void add_all(Fid fid) { put({.fid = fid, .end = kObjectBlocksMax}); }

    struct First {
        Cleared range;
        // True: the search has stopped after many keys of ranges that were removed from the index,
        // and `range` has the last of these. The caller calls first() again to search on.
        bool is_erased = false;
    };
    // Returns the first cleared range of all objects. Nothing: there is none.
    Result<std::optional<First>> first();
    // Makes a cleared range of the index begin at block `first`, because the blocks before `first`
    // are freed. Removes the range if `first` is its end. REQUIRES: the index has the range, and
    // `first` is between its beginning and its end.
    void shorten(const Cleared& range, std::uint64_t first);

private:
    Result<bool> any();
    void put(const Cleared& range);

    LayeredIndex& index_;
    std::vector<Cleared> found_;
    // No cleared range has a key before this one, so that erased keys are not looked at again.
    Key from_ = Key::first_of(KeyKind::kCleared);
    // Whether objects that exist may have cleared ranges. None: unknown.
    std::optional<bool> any_;
};

}  // namespace fopd::store
