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

// The cleared ranges of objects: they read as holes, while their extents still have blocks that
// are to be freed. Ranges of an object that exists neither overlap nor touch each other. Part of
// ObjectMap.
class ClearedRanges {
public:
    // The index outlives it.
    explicit ClearedRanges(LayeredIndex& index) : index_(index) {}

    // The first cleared range of the object that ends behind block `from`.
    Result<std::optional<Cleared>> next(Fid fid, std::uint64_t from);

    // Finds the cleared ranges that overlap a range; found() has them until the next call.
    Result<void> find(Fid fid, BlockRange range);
    const std::vector<Cleared>& found() const { return found_; }
    // Takes a range out of those that find() has found.
    void cut(BlockRange range);

    // Clears a range, and joins it with those that it overlaps or touches.
    Result<void> add(Fid fid, BlockRange range);
    // Clears all of an object that is removed.
    void add_all(Fid fid) { put({.fid = fid, .end = kObjectBlocksMax}); }

    struct First {
        Cleared range;
        bool is_erased = false;  // The search met only erased ranges so far; call again.
    };
    // The first of all cleared ranges.
    Result<std::optional<First>> first();
    // The range begins at block `first` from now on; at its end, it is gone.
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
