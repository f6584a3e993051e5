#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "core/time.h"
#include "objects/disk_use.h"
#include "store/allocator.h"
#include "store/fid.h"

namespace fopd::objects {

// The open uploads of a disk: when they were written to, and the room that they still need.
//
// The room is that on a disk before the tapes. What an upload has written cannot leave the disk
// until the upload is committed, so uploads that together need more than there is would wait for
// each other. Therefore an upload begins, and is written to, only if the uploads that are before it
// can end: the first of them always goes on. The older one is before the younger one, except:
//
// - An upload that has got no new blocks for kIdle, and was not refused for lack of room either,
//   keeps no room until it gets new blocks. If others have taken its room, it comes behind them.
//   An upload is not idle while a write to it is in progress: the client may be slow.
// - If an upload is refused because other owners' uploads keep more than a fair part of the disk,
//   the excess uploads of these owners come behind the others.
// - The room that is kept for an owner's uploads, with what the owner has, is within the owner's
//   quota. Beyond that, uploads keep no room, and go on while others leave some.
//
// Changes of other data and recalls leave a part of that room, too, see kept_from_others().
//
// After a start of the daemon, an upload that began before keeps no room until its first write. It
// is not known which of them still have a client, and most of those that were left long ago have
// none: they would keep others from the disks for kIdle. A client writes again as soon as it has
// connected.
//
// For an upload of unknown size only 1/kUnknownPart of the disk is kept: if it needs more, it may
// have to wait for those behind it. Lives on the reactor of the disk.
class OpenUploads {
public:
    static constexpr Duration kIdle = 1min;
    // The part of the disk that is left to the uploads of unknown size, to all of them together.
    static constexpr std::uint64_t kUnknownPart = 8;
    // Each check looks at all uploads that keep room. Those beyond this number keep none, and an
    // owner's uploads have at most as many of these places as are left for others.
    static constexpr std::size_t kKeepingMax = 1024;

    // `use` outlives it.
    explicit OpenUploads(DiskUse& use) : use_(use) {}
    OpenUploads(const OpenUploads&) = delete;
    OpenUploads& operator=(const OpenUploads&) = delete;

    // The upload was committed or removed.
    void gone(store::Fid fid);

    // -- how long they have been idle --

    // Notes that all uploads up to `newest` had begun by `now`: fids increase, so that dates all
    // older uploads. Of the notes older than `enough`, only the newest is kept, so there are few.
    // Uploads that are idle keep no room from then on.
    void mark(store::Fid newest, Instant now, Duration enough);
    // REQUIRES: the upload exists.
    void written(store::Fid fid, Instant now) { uploads_[fid].written_at = now; }
    // Whether the upload is known to have begun, and to have been written to last, at `then` or
    // earlier.
    bool is_idle_since(store::Fid fid, Instant then) const;

    // -- the room that they need --

    struct Expected {
        DiskUse::Owner* owner = nullptr;
        std::uint64_t left_blocks = 0;     // That are expected to be written from now on.
        bool is_unknown = false;           // It may become larger than that.
        std::uint64_t written_blocks = 0;  // That it has already.
    };
    // Whether it is known what is expected of it: not before its first write since the start of the
    // daemon, if it began earlier.
    bool expects(store::Fid fid) const;
    // Of an upload that exists. It keeps no room yet. REQUIRES: !expects(fid).
    void expect(store::Fid fid, const Expected& expected);
    // It gets on, or waits for room: from now on it keeps what it needs.
    void stay(store::Fid fid, const store::SpaceUse& space, Instant now);
    bool keeps_room(store::Fid fid) const;

    // What others need before `fid` may take blocks: those that keep room before it, and all writes
    // in progress, which have blocks to come. Also for an upload that is about to begin.
    std::uint64_t needed_before(store::Fid fid, const store::SpaceUse& space, Instant now);
    // What a change of other data, or a recall, must leave of the room: what the uploads that keep
    // room need, and all writes in progress. No more than half of the blocks that these uploads do
    // not have yet, so that the others go on in the other half.
    std::uint64_t kept_from_others(const store::SpaceUse& space, Instant now);
    // The upload was refused, because uploads before it need the room. Of other owners, those that
    // are too many come behind, if all of the upload fits then. False: nothing has changed.
    struct Refused {
        const DiskUse::Owner* owner = nullptr;
        std::uint64_t blocks = 0;
    };
    bool make_way(store::Fid fid, const Refused& refused, const store::SpaceUse& space);

    // The room of a write in progress, from before its bytes are pulled until its change begins:
    // between its check and its blocks, others must not take that room. Does nothing from the end
    // of the upload on.
    class Write {
    public:
        // REQUIRES: it is not in progress. `uploads` outlives its progress.
        void begin(OpenUploads& uploads, store::Fid fid, std::uint64_t blocks);
        // So many of its blocks were allocated.
        void took(std::uint64_t blocks);
        // So many of those were put into the change, and `added` of them are new in the upload,
        // and were taken from the quota. The others replace some.
        void counted(std::uint64_t blocks, std::uint64_t added);
        // The change has begun.
        void done(const store::SpaceUse& space, Instant now);
        // The write has ended without a change, and its blocks are given back. Nothing happens if
        // it is not in progress.
        void give_back();

    private:
        friend class OpenUploads;
        OpenUploads* uploads_ = nullptr;  // Null: not in progress.
        store::Fid fid_{};
        std::uint64_t blocks_ = 0;
        std::uint64_t taken_blocks_ = 0;
        std::uint64_t counted_blocks_ = 0;
        std::uint64_t added_blocks_ = 0;
        std::uint64_t expected_blocks_ = 0;  // Those of the added ones that were expected.
    };

private:
    struct Upload {
        std::optional<Instant> written_at{};  // Since the daemon started.
        Expected expected{};                  // No owner: nothing is known.
        // The blocks of writes in progress, without the blocks that counted() was called for.
        std::uint64_t moving_blocks = 0;
        std::uint64_t allocated_blocks = 0;  // How many of moving_blocks are allocated.
        std::uint32_t writes = 0;            // The writes in progress.
        bool keeps_room = false;
        bool is_behind = false;
        Instant kept_until{};

        // What it needs in addition to the writes in progress.
        std::uint64_t rest() const;
    };
    struct Place {
        bool is_behind = false;
        store::Fid fid{};

        friend auto operator<=>(const Place&, const Place&) = default;
    };
    struct Mark {
        store::Fid newest{};
        Instant at{};
    };

    Upload* find(store::Fid fid);
    std::uint64_t needed_at(const Place& place, const store::SpaceUse& space) const;
    Place place_of(store::Fid fid, const Upload& upload, const store::SpaceUse& space) const;
    bool has_its_places(const DiskUse::Owner& owner) const;
    void let_go_idle(Instant now);
    void end_keeping(Upload& upload);
    void leave_moving(Upload& upload, std::uint64_t moving, std::uint64_t allocated);
    void end_write(Upload& upload, const Write& write);

    DiskUse& use_;
    std::deque<Mark> marks_;
    std::map<store::Fid, Upload> uploads_;
    std::map<Place, Upload*> keeping_;  // At most kKeepingMax.
    std::uint64_t coming_blocks_ = 0;   // Of all writes in progress, without a place yet.
};

}  // namespace fopd::objects
