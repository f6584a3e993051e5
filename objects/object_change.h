#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "objects/block_io.h"
#include "objects/block_set.h"
#include "objects/disk_use.h"
#include "objects/home_volume.h"
#include "objects/writes_in_flight.h"
#include "store/bringing_back.h"
#include "store/copy.h"
#include "store/object.h"
#include "store/volume.h"

namespace fopd::objects {

// A change of objects on one disk, with the space, the quota and the object count that it affects:
//
//     use(disk); charge() and allocate() what it adds; put its records; reserve(); begin() or
//     begin_part(); finish()
//
// It takes effect as a whole when begin() succeeds, and cannot be undone from then on. Before that,
// give_back() returns all that it has taken. May be used again after clear(). Lives on the reactor
// of the disk.
class ObjectChange {
public:
    ObjectChange() = default;
    explicit ObjectChange(HomeVolume& home) : home_(&home) {}
    ObjectChange(const ObjectChange&) = delete;
    ObjectChange& operator=(const ObjectChange&) = delete;

    // REQUIRES: the change is empty. The disk is held until the change has ended.
    void use(HomeVolume& home) { home_ = &home; }
    // Makes it empty, after give_back() or finish().
    void clear();

    // -- blocks --

    // Up to `blocks` consecutive blocks, at least one. kNoSpace: there is none.
    Result<store::DiskRange> allocate(std::uint32_t blocks);
    // Like allocate(); waits for blocks that are about to become free.
    Task<Result<store::DiskRange>> allocate(std::uint32_t blocks, core::WaitOptions wait);
    // Allocates `count` single blocks for a change that frees more than it takes: all or none, so
    // that no change keeps some while it waits for others. REQUIRES: the change has none yet.
    Task<Result<void>> allocate_to_free(std::uint32_t count, core::WaitOptions wait);
    std::span<const store::DiskRange> allocated() const { return allocated_; }
    // Frees the first `ranges` of the allocated ranges. REQUIRES: no I/O on them is in flight.
    void give_back_first(std::size_t ranges);

    // -- quota: all charges of a change are for one owner in one pool, in one scope --

    DiskUse::Verdict charge(PoolOwner whose, Amount amount,
                            DiskUse::Scope scope = DiskUse::Scope::kPoolAndOwner);
    // Counts the amount for the owner when the change begins, whatever the limits are: it exists
    // already, on tape.
    void will_count(PoolOwner whose, Amount amount);
    // Sets the owner of the blocks that the extents of the change add or remove. The text is
    // borrowed until begin(), which refunds the blocks that the change frees to this owner.
    void set_block_owner(PoolOwner whose) { block_owner_ = whose; }
    PoolOwner block_owner() const { return block_owner_; }
    // Counts the blocks of `wanted` that are holes now for that owner, until the change has begun
    // or give_back(); see WritesInFlight. Counts nothing if neither the owner nor the pool has a
    // limit. REQUIRES: called once at most, before charge_holes().
    using Counted = WritesInFlight::Write::Counted;
    Result<Counted> count_in_flight(store::Fid fid, BlockSet wanted);
    // Likewise for so many blocks of an append; `request` recognises the same append, sent again.
    Counted count_append_in_flight(store::Fid fid, const store::ReplyKey& request,
                                   std::uint64_t blocks);
    // Charges that owner for the blocks of the range that are holes now, including those that
    // count already.
    struct ChargedHoles {
        DiskUse::Verdict verdict = DiskUse::Verdict::kTaken;
        std::uint64_t blocks = 0;  // If nothing was taken: those that do not count already.
    };
    Result<ChargedHoles> charge_holes(store::Fid fid, store::BlockRange range);
    // Refunds the amount to the owner when the change is durable.
    void will_free(PoolOwner whose, Amount amount,
                   DiskUse::Scope scope = DiskUse::Scope::kPoolAndOwner);
    // The change empties a released object: its owner gets what counts for it, and nothing for
    // parts that are back on the disk, which count for nobody. REQUIRES: no other object changes.
    void will_empty_released(PoolOwner whose, std::uint64_t released_blocks) {
        will_free(whose, {.blocks = released_blocks});
        empties_released_ = true;
    }

    // -- records --

    store::RecordWriter& records() { return change_.records; }
    std::size_t records_bytes() const { return change_.records.bytes().size(); }
    void put_object(store::Fid fid, const store::Object& object);
    void put_upload(store::Fid fid, const store::Upload& upload);
    // Makes the upload an object.
    void put_commit(store::Fid fid, const store::Object& object);
    void put_reply(const store::ReplyRecord& reply);
    // A whole object that is known from its copies on cartridges alone. begin() is called in the
    // same turn. See store::Volume::put_from_tape(). REQUIRES: there are no records yet.
    Result<void> put_from_tape(store::Fid fid, const store::Object& object,
                               std::vector<store::Copy> copies);
    void remove(store::Fid fid);
    // Adds a hole, and returns how many blocks that frees. See store::Volume::punch().
    Task<Result<std::uint64_t>> punch(store::Fid fid, store::BlockRange range,
                                      core::WaitOptions wait);
    // The object that the change creates or removes; begin() counts it. At most one of each.
    void will_come(store::Fid fid, PoolId pool) { coming_ = {.fid = fid, .pool = pool}; }
    void will_go(store::Fid fid, PoolId pool) { going_ = {.fid = fid, .pool = pool}; }

    // -- into the log --

    // Room in the log for the records so far and `more_bytes`.
    Task<Result<store::Reservation>> reserve(std::size_t more_bytes, core::WaitOptions wait,
                                             store::Purpose purpose = store::Purpose::kAdding);
    // After an error the change has not begun, and nothing has changed.
    Result<void> begin(store::Reservation reservation, store::Durability durability,
                       store::Data data);
    // Like begin(), for a part of an object that is being brought back from tape: its records are
    // extents within the range. Nobody is charged and no observer is called, because the object
    // stays released. See store::Volume::begin_part().
    Result<void> begin_part(store::BringingBack& attempt, store::BlockRange range,
                            store::Reservation reservation, store::Data data);
    // By how many blocks it makes its objects larger, once it has begun; may be negative.
    std::int64_t net_blocks() const { return change_.net_blocks(); }
    // Waits until its data are written. REQUIRES: begun with kPending. An error is the failure of
    // the disk, also in finish().
    Task<Result<void>> write_data(BlockIo* writes);
    // Waits until the change is as durable as it was begun to be.
    Task<Result<store::Receipt>> finish();
    // begin() and finish() of a durable change without data.
    Task<Result<store::Receipt>> commit(store::Reservation reservation);

    // Frees the blocks and refunds the charge of a change that has not begun.
    void give_back();

private:
    struct Charge {
        DiskUse::Owner* owner = nullptr;
        Amount amount{};
        DiskUse::Scope scope = DiskUse::Scope::kPoolAndOwner;
    };
    struct InPool {
        store::Fid fid{};
        PoolId pool = 0;
    };
    store::Volume& volume() const { return home_->volume(); }
    // The number of blocks that are holes now. Adds them to `holes` unless it is null.
    Result<std::uint64_t> count_holes(store::Fid fid, store::BlockRange range,
                                      BlockSet* holes) const;

    HomeVolume* home_ = nullptr;
    store::Change change_;
    store::ValueBuffer value_;
    std::vector<store::DiskRange> allocated_;
    Charge charged_;  // Before the change begins.
    WritesInFlight::Write in_flight_;
    std::uint64_t grown_ = 0;  // How many of the charged blocks were holes.
    bool empties_released_ = false;
    PoolOwner block_owner_{};
    std::vector<Charge> counted_;      // Counted when it begins.
    std::vector<Charge> freed_;        // Refunded once it is durable.
    std::vector<store::Fid> changed_;  // Objects, for the observer of the disk.
    std::optional<InPool> coming_;
    std::optional<InPool> going_;
};

}  // namespace fopd::objects
