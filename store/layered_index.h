#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/index.h"
#include "store/overlay.h"

namespace fopd::store {

// The log of all changes. A checkpoint writes a change into the index only when the log has made it
// durable. An interface, so that an index does not depend on the volume that contains it.
class ChangeLog {
public:
    virtual ~ChangeLog() = default;
    // The newest entry whose changes are all in the map.
    virtual std::uint64_t newest_change() const = 0;
    virtual Task<Result<void>> make_durable() = 0;
};

// An index, and in memory the changes since its last checkpoint, as one ordered view. A change is
// visible at once and durable nowhere: the caller also writes it to a log. A checkpoint freezes the
// changes, applies them to the index, and meanwhile new changes go to a second overlay.
//
// Lives on one reactor. Keys and values that it returns are valid until the next change or
// release(), and only in this turn.
class LayeredIndex {
public:
    explicit LayeredIndex(Index& index);
    LayeredIndex(const LayeredIndex&) = delete;
    LayeredIndex& operator=(const LayeredIndex&) = delete;

    void put(Bytes key, Bytes value) { active_->put(key, value); }
    void erase(Bytes key) { active_->erase(key); }

    // Memory taken by changes, including those of a checkpoint in progress. The caller keeps it
    // bounded; put() itself has no limit.
    std::size_t changed_bytes() const { return active_->bytes() + frozen_->bytes(); }
    std::size_t change_count() const { return active_->count() + frozen_->count(); }
    // Whether a checkpoint of the changes might write more than half of the free space of the
    // index's medium. Half, because LMDB reuses the pages that a checkpoint frees only two
    // checkpoints later.
    bool wants_checkpoint() const;

    Result<std::optional<Bytes>> get(Bytes key);

    // The outcome of a step of a search. A step passes at most kSkipMax erased keys and then
    // returns kErasedKeys, so that its time is bounded.
    enum class Found : std::uint8_t { kEntry, kNothing, kErasedKeys };
    static constexpr std::uint32_t kSkipMax = 512;
    struct Range {
        Bytes from;
        Bytes to;  // The last key of the search; in a search backwards the first one.
    };
    // Finds the first entry from `from` on, up to `to`; next() finds those that follow. After
    // kErasedKeys next() continues. The bytes of `to` are kept by the caller until the search ends.
    // One search at a time; get() is one too.
    Result<Found> at_or_after(Range range);
    // Finds the last entry at or before `from`, down to `to`; next() continues backwards.
    Result<Found> at_or_before(Range range);
    // REQUIRES: the search has not returned kNothing.
    Result<Found> next() { return go_on(); }
    // Continues the search while next() returns kErasedKeys.
    Result<Found> past_erased(Result<Found> found) {
        while (found && *found == Found::kErasedKeys) found = next();
        return found;
    }
    // The entry found; after kErasedKeys the last key passed, without a value.
    const IndexEntry& entry() const { return entry_; }
    // Ends the search, and the view of the index.
    void release();

    // Applies the changes to the index durably; it then has all entries up to `applied`. Changes
    // may be made meanwhile. One at a time. After a failure the view is unchanged, and the next
    // checkpoint first applies the changes of the failed one. REQUIRES: the entries up to `applied`
    // are durable.
    Task<Result<void>> checkpoint(std::uint64_t applied);
    // A checkpoint of all changes made so far; waits first until the log has made them durable.
    Task<Result<void>> checkpoint(ChangeLog* log);
    std::uint64_t applied() const { return index_.applied(); }
    IndexFigures figures() const { return index_.figures(); }
    bool has_reserve() const { return index_.has_reserve(); }

private:
    enum class Direction : std::uint8_t { kUp, kDown };
    // The position of the search in each layer: the newest changes, the frozen ones, the index.
    static constexpr std::size_t kLayerCount = 3;
    static constexpr std::size_t kIndexLayer = 2;
    struct Layer {
        Overlay::Cursor cursor{};
        std::optional<IndexChange> change{};
    };

    const Overlay& overlay(std::size_t layer) const { return layer == 0 ? *active_ : *frozen_; }
    Result<Found> search(Direction direction, Range range);
    Result<Found> go_on();
    Result<Found> settle();
    const IndexChange* nearest() const;
    Result<void> seek(std::size_t layer, Bytes key);
    Result<void> step(std::size_t layer);
    Result<void> leave_key();
    void set_cursor(std::size_t layer, Overlay::Cursor cursor);
    Result<void> set_entry(const Result<std::optional<IndexEntry>>& entry);
    Task<Result<void>> checkpoint_of(std::optional<std::uint64_t> applied, ChangeLog* log);
    Task<Result<void>> apply_frozen(ChangeLog* log);

    Index& index_;
    ChunkPool chunks_;
    Overlay first_{chunks_};
    Overlay second_{chunks_};
    Overlay* active_ = &first_;
    Overlay* frozen_ = &second_;  // Empty unless a checkpoint is in progress or has failed.
    std::uint64_t frozen_applied_ = 0;
    std::uint64_t index_bytes_ = 0;  // After the last checkpoint, or at the start.
    bool checkpointing_ = false;

    Direction direction_ = Direction::kUp;
    Bytes to_{};
    std::array<Layer, kLayerCount> layers_{};
    std::size_t layers_ready_ = 0;  // The other layers are positioned on demand.
    IndexEntry entry_{};
};

// A scan looks at this many entries in a turn. Also the size of a page of names.
inline constexpr std::uint32_t kEntriesATurn = 256;

// Calls LayeredIndex::release() on destruction.
class ReleaseAtEnd {
public:
    explicit ReleaseAtEnd(LayeredIndex& index) : index_(index) {}
    ~ReleaseAtEnd() { index_.release(); }
    ReleaseAtEnd(const ReleaseAtEnd&) = delete;
    ReleaseAtEnd& operator=(const ReleaseAtEnd&) = delete;

private:
    LayeredIndex& index_;
};

}  // namespace fopd::store
