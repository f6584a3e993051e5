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
    virtual Result<void> extent(Fid, const StoredExtent&) { return {}; }
    virtual Result<void> object(Fid, const Object&) { return {}; }
    virtual Result<void> upload(Fid, const Upload&) { return {}; }
    virtual Result<void> reply(const ReplyKey&, const ReplyRecord&) { return {}; }
    virtual Result<void> removed(Fid) { return {}; }
};

// The objects of a disk and where their bytes lie. Every operation is a bounded number of steps,
// whatever the size of the object, and what is found is checked (kCorrupt). An operation that fails
// has changed nothing.
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
    // The object, or the upload, is gone at once; its extents are left for sweep().
    void remove(Fid fid);
    Result<std::optional<ReplyRecord>> find_reply(const ReplyKey& key);
    void put_reply(const ReplyKey& key, const ReplyRecord& record);
    void forget_reply(const ReplyKey& key);

    // -- extents. They never overlap; what none covers is a hole. Places that are free from now on
    //    are added to `freed`. --

    // The extents of a range of an object, in order, cut to it.
    class Extents {
    public:
        // None at the end. Its checksums are good until the next call.
        Result<std::optional<Extent>> next();

    private:
        friend ObjectMap;
        Extents(ObjectMap& map, Fid fid, BlockRange range);

        LayeredIndex& index_;
        Fid fid_;
        BlockRange range_;
        enum class State : std::uint8_t { kBefore, kWithin, kEnd } state_ = State::kBefore;
        std::array<std::uint32_t, kExtentBlocksMax> checksums_;
    };
    // Requires: at most kReadBlocksMax blocks. One at a time; it ends with a change.
    static constexpr std::uint64_t kReadBlocksMax = 2048;
    Extents extents(Fid fid, BlockRange range) { return {*this, fid, range}; }

    // Puts an extent in the place of whatever was there. One that goes on where the one before it
    // ends, in the object and on the disk, is joined to it.
    Result<void> insert(Fid fid, const Extent& extent, std::vector<Place>& freed);

    struct Punched {
        std::uint64_t next = 0;  // Blocks of the range before this are a hole now.
        bool finished = false;
    };
    // Makes a hole, from the front, of at most `steps_max` extents. Call again for the rest of the
    // range until it is finished. To truncate is to punch up to kObjectBlocksMax.
    Result<Punched> punch(Fid fid, BlockRange range, std::uint32_t steps_max,
                          std::vector<Place>& freed);

    struct Swept {
        Fid fid{};
        BlockRange range{};     // It is a hole now.
        bool finished = false;  // Nothing is left of the object.
    };
    // A piece of what remove() left behind, at most `steps_max` extents; none when there is none.
    // The extents of a removed object count only until somebody else is given their places: after a
    // replay everything is swept before the blocks in use are counted, unless the sweeps were
    // logged too (and are then replayed as punches).
    Result<std::optional<Swept>> sweep(std::uint32_t steps_max, std::vector<Place>& freed);

    // -- all --

    // Shows the visitor, which lives until the end, everything of one kind by ascending key, a
    // bounded number a turn. What changes meanwhile is seen or not.
    Task<Result<void>> for_each(KeyKind kind, MapVisitor* visitor);

    // Ends what was lent.
    void release() { index_.release(); }

private:
    core::Reactor& reactor_;
    LayeredIndex& index_;
};

}  // namespace fopd::store
