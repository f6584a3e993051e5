#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "core/io.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "objects/stores.h"
#include "store/copy.h"
#include "store/fid.h"

namespace fopd::library {

// Makes room on disks for recalled objects.
class RoomMaker {
public:
    virtual ~RoomMaker() = default;
    // Releases objects until the disk has so many free blocks. kNoSpace: not enough objects can be
    // released now; objects that need a copy are written to tape at once. If the disk has fewer
    // blocks than that, nothing is released or written.
    virtual Task<Result<void>> make_room(store::Slot slot, std::uint64_t free_blocks,
                                         core::WaitOptions wait) = 0;
    // Room that was kept for a recall is for others: those that have found none may try again.
    virtual void room_may_have_come(store::Slot slot) = 0;
};

// Brings the bytes of objects back to this locality's disks, with one attempt for an object at a
// time. Until end() has succeeded, the object stays released, and the written blocks are not
// visible.
//
// Lives on the reactor of the stores.
class ReturningObjects {
public:
    // Both arguments outlive this object.
    ReturningObjects(objects::Stores& stores, RoomMaker& room);
    ReturningObjects(const ReturningObjects&) = delete;
    ReturningObjects& operator=(const ReturningObjects&) = delete;
    ~ReturningObjects();

    // The content that an attempt brings back.
    struct Content {
        std::uint64_t size_bytes = 0;
        std::uint64_t version = 0;
    };
    // Begins an attempt: reserves space on the disk for the object, and releases other objects if
    // that is necessary. Other attempts do not get this space. kNotFound: there is no such object,
    // or its bytes are on the disk. kBusy: an attempt is in progress. kNoSpace: there is not enough
    // space now. kInvalid: the disk is smaller than the object.
    Task<Result<Content>> begin(store::Fid fid);
    // Makes room for the object, and keeps this room for the object's begin() for some time, so
    // that other recalls do not use it. kNoSpace: there is not enough room yet. kNotFound: the
    // recall has ended.
    Task<Result<void>> make_room(store::Fid fid);
    // Writes a range of the object. It begins at a block, and ends with a block or with the end of
    // the object. The memory is aligned to blocks. There is a checksum for each block; the last
    // block is padded with zeros. kNoSpace: the disk is full. kBusy: the object was changed.
    // kCancelled: the disk is being removed, or cancel() was called.
    struct Part {
        store::Fid fid{};
        std::uint64_t offset = 0;
        core::Buffer from{};
        std::span<const std::uint32_t> checksums{};
    };
    Task<Result<void>> write(Part part);
    // Called when all bytes are written. Ends the released state and the recall, and returns the
    // recall; its pin remains. Ends the attempt, also if it fails.
    Task<Result<store::Recall>> end(store::Fid fid);
    // Ends the attempt, and frees the blocks it has written.
    Task<Result<void>> abandon(store::Fid fid);

    // Forgets all attempts without changes of the disk, as a crash does. REQUIRES: no call is in
    // progress.
    void drop_all();

    bool contains(store::Fid fid) const { return attempts_.contains(fid); }
    // Makes further writes of the object fail. Has no effect without an attempt.
    void cancel(store::Fid fid);
    // Called when the recall of the object has ended: other recalls may use the room that was kept
    // for it. False: no room was kept.
    bool give_up_room(store::Fid fid) { return kept_room_.erase(fid) > 0; }

private:
    class Attempt;

    Attempt& of(store::Fid fid);
    // The blocks of the disk that attempts have reserved and not written yet, and the blocks that
    // make_room() keeps.
    std::uint64_t taken_blocks(store::Slot slot) const;
    bool has_taken_room(store::Fid fid) const;
    // The room that a recall leaves to open uploads of the disk, and to those who wait before it.
    std::uint64_t kept_from(objects::HomeVolume* home, store::Fid fid) const;
    Task<Result<void>> take_space(Attempt* attempt);
    Task<Result<void>> find_space(objects::HomeVolume* home, std::uint64_t blocks);
    Task<void> let_kept_room_go();

    objects::Stores& stores_;
    RoomMaker& room_;
    std::map<store::Fid, std::unique_ptr<Attempt>> attempts_;
    // Room that make_room() has found and begin() has not used yet.
    struct KeptRoom {
        std::uint64_t blocks = 0;
        Instant until{};
    };
    std::map<store::Fid, KeptRoom> kept_room_;
    bool lets_room_go_ = false;  // let_kept_room_go() is in progress.
};

}  // namespace fopd::library
