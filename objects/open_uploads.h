#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "core/time.h"
#include "objects/disk_use.h"
#include "objects/room_line.h"
#include "store/allocator.h"
#include "store/fid.h"

namespace fopd::objects {

// The open uploads of one disk: when the client last wrote to each, and how much room each one
// keeps.
//
// The room is needed on the disks of a tape pool's staging. The blocks of an upload stay on the
// disk until the upload is committed, so uploads that together need more than the disk has would
// wait for each other for ever. Therefore the uploads have an order, and an upload may begin, or
// take blocks, only if the uploads before it still have enough room to end. The first upload in the
// order waits for no other upload, except for the end of writes in progress. Older uploads are
// before younger ones, with these exceptions:
//
// - An upload stops keeping room when it has been idle for kIdle: it has received no new blocks, it
//   was not refused for lack of room, and no write to it is in progress. It keeps room again when
//   it receives new blocks, at the back of the order if its old room has been taken.
// - Likewise when it is too slow: in up to kPaceSpan it has received fewer new blocks than
//   kBlocksPerSecondMin, and was not refused. So nobody keeps room for long with a block now and
//   then, or with writes whose bytes do not come.
// - When an upload is refused while other owners keep more than a fair part of the disk, make_way()
//   moves the uploads that exceed the fair part to the back of the order.
// - The blocks that an owner's uploads keep, together with the blocks that the owner has, do not
//   exceed the owner's quota. An upload that would exceed it keeps no room, and can take blocks
//   only while those that keep room leave some.
//
// Changes of other data and recalls must leave room as well, see kept_from_others().
//
// Who finds no room waits in a line, see RoomLine: uploads that cannot begin, writes of uploads
// that keep no room, other changes, and recalls. An upload that keeps room waits for nobody in the
// line as long as it takes what is kept for it, so that it can end; what it takes beyond that, it
// leaves to those who waited in the line when it began.
//
// After a restart of the daemon, an upload that began before it keeps no room until its first
// write. Many of these uploads have lost their client, and would block the disk for kIdle; a client
// that still exists writes as soon as it has connected.
//
// For an upload of unknown size, the disk keeps 1/kUnknownPart of its blocks. If the upload needs
// more, it may have to wait for uploads behind it. Lives on the reactor of the disk.
class OpenUploads {
public:
    static constexpr Duration kIdle = 1min;
    // An upload with this pace keeps its room. When it begins it may be slower for kPaceSpan.
    static constexpr std::int64_t kBlocksPerSecondMin = 16;
    static constexpr Duration kPaceSpan = 5min;
    // The part of the disk that is kept for uploads of unknown size: one part for all of them.
    static constexpr std::uint64_t kUnknownPart = 8;
    // The most uploads that can keep room, because each check looks at all of them. One owner can
    // have at most as many as are left for other owners.
    static constexpr std::size_t kKeepingMax = 1024;

    // `use` must outlive this object.
    explicit OpenUploads(DiskUse& use) : use_(use) {}
    OpenUploads(const OpenUploads&) = delete;
    OpenUploads& operator=(const OpenUploads&) = delete;

    // Forgets the upload. The caller calls it when the upload was committed or removed, or did not
    // begin after all.
    void gone(store::Fid fid);

    // -- how long uploads have been idle --

    // Notes that all uploads up to `newest` began at `now` or before; fids increase, so the note
    // dates older uploads, too. Forgets notes that are older than `enough`, except the newest of
    // them. Ends the keeping of uploads that are idle. The caller calls it regularly.
    void mark(store::Fid newest, Instant now, Duration enough);
    // Notes that a client wrote to the upload at `now`. REQUIRES: the upload exists.
    void written(store::Fid fid, Instant now) { uploads_[fid].written_at = now; }
    // Returns true if a note of mark() proves that the upload began at `then` or before, and no
    // write to it has been noted after `then`.
    bool is_idle_since(store::Fid fid, Instant then) const;

    // -- the room that uploads need --

    // What is known of an upload's size.
    struct Expected {
        DiskUse::Owner* owner = nullptr;
        std::uint64_t left_blocks = 0;     // New blocks that the client is expected to write yet.
        bool is_unknown = false;           // The upload may need more than left_blocks.
        std::uint64_t written_blocks = 0;  // Blocks that the upload has.
    };
    // Returns true if expect() was called for the upload. After a restart of the daemon, the caller
    // must call expect() before it checks the first write of an upload.
    bool expects(store::Fid fid) const;
    // Sets what is known of the upload's size; the upload does not keep room before stay().
    // REQUIRES: the upload exists or is about to begin, and !expects(fid).
    void expect(store::Fid fid, const Expected& expected);
    // Makes the upload keep room for its left_blocks until it has been idle for kIdle, or starts
    // that time again. The caller calls it when the upload begins, and when a write to it was
    // refused for lack of room. Does nothing without expect(). An upload that keeps no room keeps
    // none afterwards either, if its owner has its share of kKeepingMax or would exceed its quota.
    void stay(store::Fid fid, const store::SpaceUse& space, Instant now);
    bool keeps_room(store::Fid fid) const;

    // Returns how many blocks must stay available when `fid` takes blocks: those needed by the
    // uploads before it that keep room, and those that all writes in progress have not allocated
    // yet. `fid` may be an upload that is about to begin.
    std::uint64_t needed_before(store::Fid fid, const store::SpaceUse& space, Instant now);
    // Returns how many blocks a change of other data, or a recall, must leave available: those
    // needed by all uploads that keep room, and by all writes in progress. The number is at most
    // half of the disk's data blocks that these uploads have not written, so that other changes can
    // use the other half.
    std::uint64_t kept_from_others(const store::SpaceUse& space, Instant now);

    // -- who waits for room --

    // A request for room.
    struct Asked {
        const DiskUse::Owner* owner = nullptr;
        // Of an upload that begins: its expected blocks; 0: their number is unknown.
        std::uint64_t blocks = 0;
        RoomLine::Key key{};
        Instant deadline = kNever;  // The request does not wait beyond it.
    };
    // Returns how many blocks the disk must have available for a request of the upload: with fewer
    // in space.room_blocks() it is refused, and waits in the line until it comes again. Lets other
    // owners make way. `fid` may be an upload that is about to begin.
    std::uint64_t upload_needs(store::Fid fid, const Asked& asked, const store::SpaceUse& space,
                               Instant now);
    // Likewise for a change of other data.
    std::uint64_t change_needs(const Asked& asked, const store::SpaceUse& space, Instant now);
    // Returns how many blocks a recall of the object must leave available, beside the room of other
    // recalls, see RoomLine::first_recall_before().
    std::uint64_t kept_from_recall(store::Fid fid, const store::SpaceUse& space, Instant now);
    // The recall has found too little room, and waits for so many blocks. The caller calls it again
    // within RoomLine::kRecallStays, as long as this holds.
    void recall_waits(store::Fid fid, std::uint64_t blocks, Instant now);
    // Room is reserved for the recall, of which it has not used so many blocks yet. Called
    // likewise, so that a recall that has waited gets all of its room. Does nothing for a recall
    // that has no place.
    void recall_has_room(store::Fid fid, std::uint64_t blocks, Instant now) {
        line_.renew({.fid = fid, .is_recall = true}, blocks, now);
    }
    // The recall has used its room, or wants none any more.
    void recall_ended(store::Fid fid) { line_.leave({.fid = fid, .is_recall = true}); }
    // Who waits for room. No reply shows how many wait, and for how long.
    RoomLine& line() { return line_; }

    // A request of an upload that was refused, because the uploads before it need the room.
    struct Refused {
        const DiskUse::Owner* owner = nullptr;
        std::uint64_t blocks = 0;
    };
    // Moves uploads of other owners to the back of the order, the youngest first, until each of
    // these owners keeps at most a fair part of the disk before `fid`. Returns true if it has done
    // so; the caller then asks needed_before() again. Returns false, and moves nothing, if `fid`
    // and all its blocks would not fit afterwards.
    bool make_way(store::Fid fid, const Refused& refused, const store::SpaceUse& space);

    // Reserves the blocks of a write, from before its bytes are pulled until its change begins, so
    // that other requests cannot take them in between. If the upload goes meanwhile, the
    // reservation has ended and all calls do nothing.
    class Write {
    public:
        // Reserves `blocks`. Does nothing if the upload is not known. The caller must end the write
        // by done() or give_back(). REQUIRES: the write is not in progress. `uploads` outlives it.
        void begin(OpenUploads& uploads, store::Fid fid, std::uint64_t blocks);
        // The caller has allocated this many of the reserved blocks.
        void took(std::uint64_t blocks);
        // The caller has put this many of the allocated blocks into its change. `added` of them are
        // new in the upload and were charged to the owner; the others replace blocks.
        void counted(std::uint64_t blocks, std::uint64_t added);
        // Ends the write; if it has added blocks, the upload keeps room as after stay(). The caller
        // calls it in the turn in which its change has begun.
        void done(const store::SpaceUse& space, Instant now);
        // Ends the write and takes back what counted() has counted. The caller calls it if its
        // change did not begin, after it has freed the blocks. Does nothing if the write is not in
        // progress.
        void give_back();

    private:
        friend class OpenUploads;
        OpenUploads* uploads_ = nullptr;  // Null: not in progress.
        store::Fid fid_{};
        std::uint64_t blocks_ = 0;           // Reserved by begin().
        std::uint64_t taken_blocks_ = 0;     // The sum of took().
        std::uint64_t counted_blocks_ = 0;   // The sum of counted().
        std::uint64_t added_blocks_ = 0;     // The sum of `added` of counted().
        std::uint64_t expected_blocks_ = 0;  // The part of added_blocks_ taken off left_blocks.
    };

private:
    struct Upload {
        std::optional<Instant> written_at{};  // The last write since the daemon started.
        Expected expected{};                  // Its owner is null until expect().
        // The blocks of writes in progress, without those that counted() was called for.
        std::uint64_t moving_blocks = 0;
        std::uint64_t allocated_blocks = 0;  // The part of moving_blocks that is allocated.
        std::uint32_t writes = 0;            // The number of writes in progress.
        bool keeps_room = false;
        bool is_behind = false;  // Valid while keeps_room: its rank is behind others, see Rank.
        Instant kept_since{};    // While keeps_room.
        Instant kept_until{};    // From then on the upload is idle, unless a write is in progress.
        // From then on it is too slow. None: it has not kept room since the daemon started.
        std::optional<Instant> in_pace_until{};

        void note_pace(std::uint64_t blocks, Instant now);
        bool is_slow(Instant now) const { return in_pace_until && *in_pace_until <= now; }
        // Returns the expected blocks beyond those of writes in progress.
        std::uint64_t rest() const;
    };
    // The position of an upload in the order: all that are not behind come first, by age, then all
    // that are behind, by age.
    struct Rank {
        bool is_behind = false;
        store::Fid fid{};

        friend auto operator<=>(const Rank&, const Rank&) = default;
    };
    // A note of mark(): all uploads up to `newest` began at `at` or before.
    struct Mark {
        store::Fid newest{};
        Instant at{};
    };

    Upload* find(store::Fid fid);
    // Returns the blocks needed by uploads of a lower rank, and by all writes in progress.
    std::uint64_t needed_at(const Rank& rank, const store::SpaceUse& space) const;
    Rank rank_of(store::Fid fid, const Upload& upload, const store::SpaceUse& space) const;
    // Returns true if the owner has as many uploads that keep room as are left for other owners.
    bool has_its_share(const DiskUse::Owner& owner) const;
    void keep(store::Fid fid, const store::SpaceUse& space, Instant now);
    // Ends the keeping of uploads that are idle or too slow.
    void let_go_idle(Instant now);
    // The room that a request of the upload must leave to those who wait in the line.
    std::uint64_t wanted_by_waiting(store::Fid fid, const Asked& asked, Instant now);
    // Has the line see how much room there is, which may end a turn.
    void observe_room(const store::SpaceUse& space, Instant now);
    void note_answer(const Asked& asked, std::uint64_t needed, const store::SpaceUse& space,
                     Instant now);
    // Ends the promise of the upload. The caller removes the upload from keeping_.
    void end_keeping(Upload& upload);
    // Takes blocks off moving_blocks, `allocated` of which are allocated.
    void leave_moving(Upload& upload, std::uint64_t moving, std::uint64_t allocated);
    void end_write(Upload& upload, const Write& write);

    DiskUse& use_;
    std::deque<Mark> marks_;  // The oldest first.
    std::map<store::Fid, Upload> uploads_;
    RoomLine line_;
    std::map<Rank, Upload*> keeping_;  // The uploads that keep room, at most kKeepingMax.
    std::uint64_t coming_blocks_ = 0;  // Of all writes in progress: reserved, not yet allocated.
};

}  // namespace fopd::objects
