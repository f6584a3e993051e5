#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/extent.h"
#include "store/fid.h"
#include "store/layered_index.h"
#include "store/object.h"
#include "store/reply_places.h"

namespace fopd::store {

// Blocks of an object.
struct BlockRange {
    std::uint64_t first = 0;
    std::uint64_t count = 0;

    std::uint64_t end() const { return first + count; }
    friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

// Whom for_each() shows what there is; an error ends it. What is lent is good for the call.
class MapVisitor {
public:
    virtual ~MapVisitor() = default;
    virtual Result<void> extent(const StoredExtent&) { return {}; }
    virtual Result<void> object(Fid, const Object&) { return {}; }
    virtual Result<void> upload(Fid, const Upload&) { return {}; }
    virtual Result<void> reply(const ReplyRecord&) { return {}; }
    virtual Result<void> cleared(const Cleared&) { return {}; }
    // Called between the turns that show something; it may take its time.
    virtual Task<Result<void>> between_turns() { co_return Result<void>{}; }
};

// The objects of a disk and where their bytes lie. Every operation is a bounded number of steps,
// whatever the size of the object, and what is found is checked (kCorrupt). An operation that fails
// has changed nothing.
//
// What is cleared is a hole to whoever looks, while its extents still have their places: they go a
// piece at a time, see sweep().
//
// The same operations in the same order make the same map, so that a log of them can be replayed,
// and again over a map that has some of them already.
// Lives on one reactor; what it lends is good until the next change or release(), and for one turn.
class ObjectMap {
public:
    ObjectMap(core::Reactor& reactor, LayeredIndex& index);

    // -- objects, uploads, replies --

    Result<std::optional<Object>> find(Fid fid);
    void put(Fid fid, const Object& object);
    Result<std::optional<Upload>> find_upload(Fid fid);
    void put_upload(Fid fid, const Upload& upload);
    // What was uploaded is the object from now on.
    void commit_upload(Fid fid, const Object& object);
    // The object, or the upload, is gone at once, and all of it is cleared.
    void remove(Fid fid);
    // The number of the request whose reply is stored in the place of `key`: this request, an
    // earlier or a later one. 0: no reply is stored there.
    Result<std::uint64_t> newest_request(const ReplyKey& key);
    // The reply that has the place of the request.
    Result<std::optional<ReplyRecord>> find_reply(const ReplyKey& key);
    // Does nothing if the place has the reply to a later request.
    Result<void> put_reply(const ReplyRecord& record);
    // The one that has the place.
    void forget_reply(const ReplyKey& key);
    // The newest record that changed a name, as the volume says; zero: none did.
    Result<std::uint64_t> newest_name();
    void put_newest_name(std::uint64_t seq);

    // -- extents. They never overlap; what none covers is a hole. Places that are free from now on
    //    are added to `freed`. --

    // The extents of a range of an object, in order, cut to it.
    class Extents {
    public:
        // None at the end. Its checksums are good until the next call.
        Result<std::optional<Extent>> next();

    private:
        friend ObjectMap;
        enum class State : std::uint8_t { kBefore, kFirst, kWithin, kEnd };

        Extents(ObjectMap& map, Fid fid, BlockRange range);
        Result<bool> begin_part();
        Result<std::optional<StoredExtent>> holding_first();
        Extent cut(const StoredExtent& extent);

        ObjectMap& map_;
        const Fid fid_;
        const BlockRange range_;
        State state_;
        BlockRange part_;     // Of the range: nothing of it is cleared.
        std::uint64_t next_;  // Behind what was given out.
        Key to_;
        std::array<std::uint32_t, kExtentBlocksMax> checksums_;
    };
    // Requires: at most kReadBlocksMax blocks. One at a time; it ends with a change.
    static constexpr std::uint64_t kReadBlocksMax = 2048;
    Extents extents(Fid fid, BlockRange range) { return {*this, fid, range}; }

    struct Counted {
        std::uint64_t blocks = 0;
        std::uint64_t next = 0;  // Where to go on.
        bool finished = false;
        bool met_cleared = false;  // The count skipped a cleared range.
    };
    // How many blocks of a range extents have; looks at so many of them at most.
    Result<Counted> count(Fid fid, BlockRange range, std::uint32_t steps_max);
    // Of extents that count no more, too.
    Result<Counted> count_all(Fid fid, BlockRange range, std::uint32_t steps_max);

    // Puts an extent in the place of whatever was there, and says how many blocks more the object
    // has. One that goes on where the one before it ends, in the object and on the disk, is joined
    // to it.
    Result<std::uint64_t> insert(Fid fid, const Extent& extent, std::vector<Place>& freed);

    struct Punched {
        std::uint64_t next = 0;  // Blocks of the range before this are a hole now.
        bool finished = false;
    };
    // Makes a hole, from the front, of at most `steps_max` extents. Call again for the rest of the
    // range until it is finished. To truncate is to punch up to kObjectBlocksMax.
    Result<Punched> punch(Fid fid, BlockRange range, std::uint32_t steps_max,
                          std::vector<Place>& freed);

    // Makes a hole at once, however many extents there are: they are left for sweep(). Takes a step
    // for each range that was cleared before and is in it, or beside it.
    Result<void> clear(Fid fid, BlockRange range);

    // A range has no extents any more, so that nothing of it has to go.
    Result<void> forget_cleared(Fid fid, BlockRange hole);

    struct Swept {
        Fid fid{};
        BlockRange range{};  // It is a hole now, of which nothing is left.
    };
    // A piece of what was cleared, at most `steps_max` extents; none when there is none. What is
    // cleared keeps its places until then: after a replay everything is swept before the blocks in
    // use are counted, unless the sweeps were logged too (and are then replayed as punches).
    Result<std::optional<Swept>> sweep(std::uint32_t steps_max, std::vector<Place>& freed);

    // -- all --

    // Shows the visitor, which lives until the end, everything of one kind by ascending key, a
    // bounded number a turn. What changes meanwhile is seen or not; it ends in the turn in which it
    // has seen the last, unless the visitor takes its time then.
    Task<Result<void>> for_each(KeyKind kind, MapVisitor* visitor);

    // Ends what was lent, which a change does too. Whoever has looked does it before its turn ends.
    void release() { index_.release(); }

private:
    // What becomes free where a range overlaps the extent that begins at `first`.
    struct Piece {
        std::uint64_t first;
        Place place;
    };
    // What there is where something else comes; the pieces are in pieces_.
    struct Around {
        std::size_t piece_count = 0;
        std::optional<StoredExtent> left{};  // Begins before the range, and reaches up to it.
        std::optional<Bytes> right{};        // The value of what is left behind the range.
    };
    // How far for_each() is.
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

    Result<std::optional<Cleared>> next_cleared(Fid fid, std::uint64_t from);
    Result<bool> has_cleared();
    Result<void> find_cleared(Fid fid, BlockRange range);
    std::uint64_t count_pieces(const Around& around, BlockRange range) const;
    void put_cleared(const Cleared& cleared);
    void cut_cleared(BlockRange range);
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
    std::array<Piece, kExtentBlocksMax> pieces_;
    ValueBuffer left_;
    ValueBuffer middle_;
    ValueBuffer right_;
    std::vector<Cleared> cleared_;
    ReplyPlaces reply_places_;
    // Nothing that is cleared comes before this.
    Key sweep_from_ = Key::first_of(KeyKind::kCleared);
    std::optional<bool> has_cleared_;  // Of objects that are still there; perhaps.
};

}  // namespace fopd::store
