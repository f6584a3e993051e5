#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/cleared_ranges.h"
#include "store/copies.h"
#include "store/copy.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/layered_index.h"
#include "store/object.h"
#include "store/reply_places.h"

namespace fopd::store {

// Receives the entries that ObjectMap::for_each() finds; an error ends the walk. The arguments are
// valid during the call only.
class MapVisitor {
public:
    virtual ~MapVisitor() = default;
    virtual Result<void> extent(const StoredExtent&) { return {}; }
    virtual Result<void> object(Fid, const Object&) { return {}; }
    virtual Result<void> upload(Fid, const Upload&) { return {}; }
    virtual Result<void> reply(const ReplyRecord&) { return {}; }
    virtual Result<void> cleared(const Cleared&) { return {}; }
    virtual Result<void> copy(const Copy&) { return {}; }
    virtual Result<void> position(const PositionOwner&) { return {}; }
    virtual Result<void> total(const CartridgeTotal&) { return {}; }
    virtual Result<void> recall(Fid, const Recall&) { return {}; }
    // Called after the entries of each turn; it may suspend.
    virtual Task<Result<void>> between_turns() { co_return Result<void>{}; }
};

// The objects of a disk and where their bytes lie. Every operation takes a bounded number of steps,
// whatever the size of the object, and checks what it reads (kCorrupt). An operation that fails has
// changed nothing.
//
// A cleared range reads as a hole at once, while its extents keep their blocks until sweep() frees
// them a part at a time. See ClearedRanges.
//
// The same operations in the same order make the same map, so that a log of them can be replayed,
// also over a map that has some of them already.
// Lives on one reactor. Views that it returns are valid until the next change or release(), and
// only in this turn.
class ObjectMap {
public:
    ObjectMap(core::Reactor& reactor, LayeredIndex& index);

    // -- objects, uploads, replies --

    Result<std::optional<Object>> find(Fid fid);
    // Writes the object's record. Copies that were made of another content of the object are
    // removed.
    Result<void> put(Fid fid, const Object& object);
    Result<std::optional<Upload>> find_upload(Fid fid);
    void put_upload(Fid fid, const Upload& upload);
    // Makes the upload an object.
    Result<void> commit_upload(Fid fid, const Object& object);
    // Removes the object, or the upload, with its copies and its recall, and clears all of it.
    Result<void> remove(Fid fid);
    // The number of the request whose reply is stored in the place of `key`: this request, an
    // earlier or a later one. 0: no reply is stored there.
    Result<std::uint64_t> newest_request(const ReplyKey& key);
    // The reply that is stored in the place of `key`.
    Result<std::optional<ReplyRecord>> find_reply(const ReplyKey& key);
    // Does nothing if the place has the reply to a later request.
    Result<void> put_reply(const ReplyRecord& record);
    // Removes the reply that is stored in the place of `key`.
    void forget_reply(const ReplyKey& key);
    // The number that put_newest_name() has stored: the newest entry of the log that changed a
    // name; zero: none.
    Result<std::uint64_t> newest_name();
    void put_newest_name(std::uint64_t seq);

    // -- copies on cartridges, released objects, recalls --

    Copies& copies() { return copies_; }
    const Copies& copies() const { return copies_; }
    Result<std::optional<Recall>> find_recall(Fid fid);
    void put_recall(Fid fid, const Recall& recall);
    void erase_recall(Fid fid) { index_.erase(Key::recall(fid)); }
    // Whether an object may be released. True until the census has looked at all of them.
    bool may_have_released() const { return may_have_released_; }
    void set_no_released() { may_have_released_ = false; }

    // -- extents --
    //
    // They never overlap; blocks that no extent covers are a hole. Changes add the disk ranges that
    // become free to `freed`.

    // The extents of a range of an object, in order, cut to it.
    class Extents {
    public:
        // None at the end. The checksums are valid until the next call. kBusy: the range has blocks
        // and the object is released, so that blocks without an extent are not zeros.
        Result<std::optional<Extent>> next();

    private:
        friend ObjectMap;
        enum class State : std::uint8_t { kBefore, kFirst, kWithin, kEnd };

        Extents(ObjectMap& map, Fid fid, BlockRange range, bool with_parts);
        Result<void> check_released() const;
        Result<bool> begin_part();
        Result<std::optional<StoredExtent>> holding_first();
        Extent cut(const StoredExtent& extent);

        ObjectMap& map_;
        const Fid fid_;
        const BlockRange range_;
        bool is_checked_;  // Whether the object is released.
        State state_;
        BlockRange part_;     // A part of the range, between two cleared ranges.
        std::uint64_t next_;  // Behind the last extent returned.
        Key to_;
        std::array<std::uint32_t, kExtentBlocksMax> checksums_;
    };
    // REQUIRES: at most kReadBlocksMax blocks. One at a time; a change ends it.
    static constexpr std::uint64_t kReadBlocksMax = 2048;
    Extents extents(Fid fid, BlockRange range) { return {*this, fid, range, false}; }
    // Also reads a released object: then the blocks that are back already.
    Extents parts(Fid fid, BlockRange range) { return {*this, fid, range, true}; }

    struct Counted {
        std::uint64_t blocks = 0;
        std::uint64_t next = 0;  // The block to continue at.
        bool finished = false;
        bool met_cleared = false;  // The count skipped a cleared range.
    };
    // Counts the blocks of a range that extents have, without cleared ones. Looks at `steps_max`
    // extents at most; call again for the rest of the range until it is finished.
    Result<Counted> count(Fid fid, BlockRange range, std::uint32_t steps_max);
    // Like count(), but includes cleared blocks.
    Result<Counted> count_all(Fid fid, BlockRange range, std::uint32_t steps_max);

    // Replaces the blocks of the object in the range of the extent, and returns how many blocks the
    // object has gained. An extent that continues the one before it, in the object and on the disk,
    // is joined to it.
    Result<std::uint64_t> insert(Fid fid, const Extent& extent, std::vector<DiskRange>& freed);

    struct Punched {
        std::uint64_t next = 0;  // Blocks of the range before this are a hole now.
        bool finished = false;
    };
    // Frees at most `steps_max` extents of the range, the first ones first. Call again for the rest
    // of the range until it is finished. A truncate punches from the new end up to
    // kObjectBlocksMax.
    Result<Punched> punch(Fid fid, BlockRange range, std::uint32_t steps_max,
                          std::vector<DiskRange>& freed);

    // Turns the range into a hole in one call, whatever the number of its extents: sweep() frees
    // them later. Takes a step for each range that was cleared before and overlaps or touches this
    // one.
    Result<void> clear(Fid fid, BlockRange range);

    // The range has no extents any more, so sweep() has nothing to free there.
    Result<void> forget_cleared(Fid fid, BlockRange hole);

    struct Swept {
        Fid fid{};
        BlockRange range{};  // Has no extents any more.
    };
    // Frees a part of a cleared range, at most `steps_max` extents; none when nothing is cleared.
    // The caller logs each part as a punch, so that a replay makes the same map.
    Result<std::optional<Swept>> sweep(std::uint32_t steps_max, std::vector<DiskRange>& freed);

    // -- the whole map --

    // Calls the visitor for every entry of one kind, by ascending key, a bounded number a turn.
    // Entries that change meanwhile may be missed. Ends in the turn of the last entry, unless the
    // visitor suspends then. The visitor outlives it.
    Task<Result<void>> for_each(KeyKind kind, MapVisitor* visitor);

    // Ends the view of the index, as a change does. REQUIRES: called before the turn ends, after
    // anything was read.
    void release() { index_.release(); }

private:
    // The blocks on the disk where a range overlaps the extent that begins at `first`.
    struct Overlap {
        std::uint64_t first;
        DiskRange on_disk;
    };
    // The extents that a range overlaps or touches; where it overlaps them is in overlaps_.
    struct Around {
        std::size_t overlap_count = 0;
        std::optional<StoredExtent> left{};  // Begins before the range, and reaches up to it.
        std::optional<Bytes> right{};        // The value of the extent that is left behind it.
    };
    // Where for_each() continues.
    class Position {
    public:
        explicit Position(KeyKind kind);
        KeyKind kind() const { return kind_; }
        Bytes key() const { return std::span(bytes_).first(size_); }
        // kCorrupt when the key is too long to be one.
        Result<void> set_behind(Bytes key);

    private:
        const KeyKind kind_;
        std::array<std::byte, 32> bytes_;
        std::size_t size_;
    };

    std::uint64_t count_overlapping(const Around& around, BlockRange range) const;
    Result<Around> find_around(Fid fid, BlockRange range);
    Result<void> find_left(Fid fid, BlockRange range, Around& around);
    Result<Punched> find_within(Fid fid, BlockRange range, std::uint32_t steps_max, Around& around);
    void note_overlapped(const StoredExtent& extent, BlockRange range, Around& around);
    void put_right(Fid fid, BlockRange range, const std::optional<Bytes>& value);
    Result<bool> show_some(Position& position, MapVisitor* visitor);
    static Result<void> show(KeyKind kind, const IndexEntry& entry, MapVisitor* visitor);

    core::Reactor& reactor_;
    LayeredIndex& index_;
    // Work space of one operation.
    std::array<Overlap, kExtentBlocksMax> overlaps_;
    ValueBuffer left_;
    ValueBuffer middle_;
    ValueBuffer right_;
    ClearedRanges cleared_;
    Copies copies_;
    bool may_have_released_ = true;
    ReplyPlaces reply_places_;
};

}  // namespace fopd::store
