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

// The log that has every change: none becomes part of an index before it is durable there.
class ChangeLog {
public:
    virtual ~ChangeLog() = default;
    // The newest record of which every change has been made.
    virtual std::uint64_t newest_change() const = 0;
    virtual Task<Result<void>> make_durable() = 0;
};

// An index and, before it, what has changed since its last checkpoint, in memory: one ordered view
// of both. What is changed is seen at once and durable nowhere; the caller has it in a log.
//
// Lives on one reactor. What it lends is good until the next change or release(), and for one turn.
class LayeredIndex {
public:
    explicit LayeredIndex(Index& index);
    LayeredIndex(const LayeredIndex&) = delete;
    LayeredIndex& operator=(const LayeredIndex&) = delete;

    void put(Bytes key, Bytes value) { active_->put(key, value); }
    void erase(Bytes key) { active_->erase(key); }

    // Memory that changes take, with that of a checkpoint under way. Whoever changes keeps it
    // bounded: put() takes what it needs.
    std::size_t changed_bytes() const { return active_->bytes() + frozen_->bytes(); }
    std::size_t change_count() const { return active_->count() + frozen_->count(); }
    // Whether a checkpoint of what has changed may write more of the index's medium than it should.
    // LMDB has the space that one checkpoint frees only two later, so it should be half of the
    // room.
    bool wants_checkpoint() const;

    Result<std::optional<Bytes>> get(Bytes key);

    // What a search came upon. A search looks at kSkipMax keys that were erased, and then says how
    // far it is, so that it is short however many there are.
    enum class Found : std::uint8_t { kEntry, kNothing, kErasedKeys };
    static constexpr std::uint32_t kSkipMax = 512;
    struct Range {
        Bytes from;
        Bytes to;  // The last key that is asked for; the first, when the search goes backwards.
    };
    // The first entry from `from` on, and no further than `to`; then those that follow. After
    // kErasedKeys next() goes on. `to` is the caller's until the search ends; there is one search
    // at a time, and get() is one too.
    Result<Found> at_or_after(Range range);
    // The last entry at or before `from`, and no further back than `to`; next() goes backwards.
    Result<Found> at_or_before(Range range);
    // Requires: the search has not come to its end.
    Result<Found> next() { return go_on(); }
    // Continues the search while next() returns kErasedKeys.
    Result<Found> past_erased(Result<Found> found) {
        while (found && *found == Found::kErasedKeys) found = next();
        return found;
    }
    // The entry found; after kErasedKeys the last key that was looked at, without a value.
    const IndexEntry& entry() const { return entry_; }
    // Ends a search, and the view of the index.
    void release();

    // Makes what has changed part of the index, which then has all records up to `applied`, all of
    // them durable; changes go on meanwhile. One at a time. After a failure all stays as it is, and
    // the next one begins with what this left behind.
    Task<Result<void>> checkpoint(std::uint64_t applied);
    // Waits until the log has made all changes so far durable, and makes a checkpoint of them.
    Task<Result<void>> checkpoint(ChangeLog* log);
    std::uint64_t applied() const { return index_.applied(); }
    IndexFigures figures() const { return index_.figures(); }
    bool has_reserve() const { return index_.has_reserve(); }

private:
    enum class Direction : std::uint8_t { kUp, kDown };
    // What the overlays and the index have, the newest first, where the search is.
    static constexpr std::size_t kLayerCount = 3;
    static constexpr std::size_t kIndexLayer = 2;
    struct Layer {
        Overlay::Place place{};
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
    void set_place(std::size_t layer, Overlay::Place place);
    Result<void> set_entry(const Result<std::optional<IndexEntry>>& entry);
    Task<Result<void>> checkpoint_of(std::optional<std::uint64_t> applied, ChangeLog* log);
    Task<Result<void>> apply_frozen(ChangeLog* log);

    Index& index_;
    ChunkPool chunks_;
    Overlay first_{chunks_};
    Overlay second_{chunks_};
    Overlay* active_ = &first_;
    Overlay* frozen_ = &second_;  // Empty when no checkpoint is under way or has failed.
    std::uint64_t frozen_applied_ = 0;
    std::uint64_t index_bytes_ = 0;  // After the last checkpoint of this life.
    bool checkpointing_ = false;

    Direction direction_ = Direction::kUp;
    Bytes to_{};
    std::array<Layer, kLayerCount> layers_{};
    std::size_t layers_ready_ = 0;  // The other layers are positioned on demand.
    IndexEntry entry_{};
};

// A scan looks at this many entries before it yields to the reactor. The size of a page of names,
// too.
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
