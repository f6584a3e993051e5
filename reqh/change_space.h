#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/task.h"
#include "fop/range.h"
#include "objects/block_set.h"
#include "objects/disk_use.h"
#include "objects/object_change.h"
#include "objects/open_uploads.h"
#include "reqh/refusal.h"
#include "reqh/refusal_words.h"
#include "reqh/running_fop.h"
#include "store/extent.h"
#include "store/object_map.h"

namespace fopd::reqh {

// Checks and takes the space of a fop's change: blocks of the disk and quota of the owner. A change
// takes its space before it begins. If it does not begin, the change gives back blocks and quota,
// and the caller then calls give_back(). Lives on the reactor of the disk in use.
class ChangeSpace {
public:
    // All arguments must outlive this object.
    ChangeSpace(const RunningFop& fop, objects::ObjectChange& change, RefusalWords& words)
        : fop_(fop), change_(change), words_(words) {}

    // Checks that the disk has this many blocks, free or about to become free. Reserves nothing.
    // Refuses with kStagingFull if the pool is on tape and the disk has enough blocks for data in
    // total, because other data can leave for tape; with kNoSpace otherwise.
    Granted<> check_room(objects::PoolId pool, std::uint64_t blocks);
    // Does check_room() and check_beside_uploads() for an object of a tape pool, so that a fop is
    // refused before its bytes are pulled. Grants everything in other pools.
    Granted<> check_staging(objects::PoolId pool, store::Fid fid, std::uint64_t blocks);
    // Refuses a change with kStagingFull if it would take room that uploads keep, see
    // objects::OpenUploads::change_needs(); the change waits in the line for room until it comes
    // again. Grants everything in pools that are not on tape. REQUIRES: the object is loaded.
    Granted<> check_beside_uploads(objects::PoolId pool, store::Fid fid, std::uint64_t blocks);
    // Checks the room for an upload that begins; refuses as check_room() does. In a tape pool, the
    // upload must also leave the room that uploads before it need, and keeps room itself from now
    // on, see objects::OpenUploads; the caller must call OpenUploads::gone() if the upload does not
    // begin after all. `blocks` is 0 if the size is unknown.
    Granted<> begin_upload(objects::PoolOwner whose, store::Fid fid, std::uint64_t blocks);
    // Counts the blocks that a write adds to an upload, as count_in_flight() does. In a tape pool,
    // also checks the write, and reserves its room until upload_write_begun() or give_back().
    // Refuses as begin_upload() does, and with kQuota; a refused write has no room. REQUIRES: the
    // upload is loaded, and is not removed before the task ends.
    struct UploadPart {
        objects::PoolId pool = 0;
        objects::DiskUse::Owner* owner = nullptr;
        store::Fid fid{};
        std::uint64_t size_bytes = 0;  // The announced size of the whole upload; 0 if unknown.
        store::BlockRange range{};     // The blocks of this write.
        // The size of `range`; for a write that begins the upload, the blocks of the whole upload.
        std::uint64_t blocks = 0;
    };
    Task<Granted<>> begin_upload_write(UploadPart part);
    // Ends the reservation of begin_upload_write(). The caller calls it in the reactor turn in
    // which the change has begun.
    void upload_write_begun();
    // Ends the reservation of a write whose change has not begun. The caller calls it at the end of
    // each fop, after the change has given back its blocks; does nothing if nothing is reserved.
    void give_back() { upload_write_.give_back(); }
    // Returns how many free blocks the disk should have. Valid after a refusal with kStagingFull.
    std::uint64_t wanted_free_blocks() const { return wanted_free_blocks_; }
    // Makes the refusal of a change for which the disk lacks blocks, or room for records:
    // kStagingFull if the space can become free, and kNoSpace with `words` otherwise.
    Refusal why_full(objects::PoolId pool, std::uint64_t lacking, std::string_view words);
    // Allocates up to `blocks` consecutive blocks. If the disk is full, waits until blocks that are
    // being freed become free.
    Task<Granted<store::DiskRange>> allocate(std::uint32_t blocks);
    // Allocates `count` single blocks from the reserve for changes that free more than they take.
    // Allocates all or none, so that operations do not wait for each other's blocks. REQUIRES: the
    // change has no allocated blocks.
    Task<Granted<>> allocate_to_free(std::uint32_t count);
    // Refuses with kQuota if the amount is more than the owner or the pool may still have. Takes
    // nothing, so charge() can still refuse the amount later.
    Granted<> check_quota(objects::PoolOwner whose, objects::Amount amount);
    // Charges the owner, or refuses with kQuota and charges nothing. All charges of a change must
    // have one owner and one scope.
    Granted<> charge(objects::PoolOwner whose, objects::Amount amount,
                     objects::DiskUse::Scope scope = objects::DiskUse::Scope::kPoolAndOwner);
    // Counts the blocks that a write of these ranges will add to the object for the quota of its
    // owner, until its change has begun or the fop has ended, so that writes in flight do not
    // exceed the quota together: see objects::WritesInFlight. Refuses with kQuota, and counts
    // nothing, if they exceed it. REQUIRES: the object is loaded; called once at most.
    Granted<> count_in_flight(store::Fid fid, std::span<const fop::Range> ranges);
    // Likewise for an append of so many bytes, if the object has `size_bytes` by then.
    Granted<> count_append_in_flight(store::Fid fid, std::uint64_t size_bytes,
                                     std::uint64_t append_bytes);
    // Charges the owner of the object's blocks for the holes in the range, which the change fills.
    // Refuses with kQuota, and charges nothing, if they exceed the quota.
    Granted<> charge_holes(store::Fid fid, store::BlockRange blocks);

private:
    bool has_tapes(objects::PoolId pool) const;
    Task<Granted<>> expect_rest_of(UploadPart part);
    Granted<> check_upload(const UploadPart& part);
    // Whether the disk has so many blocks available. kStagingFull.
    Granted<> check_available(std::uint64_t needed, const store::SpaceUse& space);
    Granted<> count_blocks_in_flight(store::Fid fid, objects::BlockSet wanted);
    Granted<> check_counted(const objects::ObjectChange::Counted& counted);
    Refusal why_no_space(const Error& error, std::uint64_t blocks);
    Refusal why_over_quota(objects::PoolOwner whose, objects::Amount wanted,
                           objects::DiskUse::Verdict verdict);

    const RunningFop& fop_;
    objects::ObjectChange& change_;
    RefusalWords& words_;
    std::uint64_t wanted_free_blocks_ = 0;
    objects::OpenUploads::Write upload_write_;
};

}  // namespace fopd::reqh
