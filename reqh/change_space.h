#pragma once

#include <cstdint>
#include <string_view>

#include "core/task.h"
#include "objects/disk_use.h"
#include "objects/object_change.h"
#include "objects/open_uploads.h"
#include "reqh/refusal.h"
#include "reqh/refusal_words.h"
#include "reqh/running_fop.h"
#include "store/extent.h"
#include "store/object_map.h"

namespace fopd::reqh {

// The space of a fop's change: blocks and quota, which the change takes before it begins, and gives
// back if it does not begin.
class ChangeSpace {
public:
    // All outlive it.
    ChangeSpace(const RunningFop& fop, objects::ObjectChange& change, RefusalWords& words)
        : fop_(fop), change_(change), words_(words) {}

    // kNoSpace if the disk has fewer blocks than that, free or waiting to be free. Reserves
    // nothing. As all that has no space, kStagingFull if that is for an object of a tape pool: room
    // is made then.
    Granted<> check_room(objects::PoolId pool, std::uint64_t blocks);
    // Checks an object of a tape pool only, before its bytes are moved in vain. It leaves what
    // check_beside_uploads() asks for.
    Granted<> check_staging(objects::PoolId pool, std::uint64_t blocks);
    // kStagingFull if a change of an object of a tape pool would take room that uploads keep, see
    // objects::OpenUploads::kept_from_others().
    Granted<> check_beside_uploads(objects::PoolId pool, std::uint64_t blocks);
    // Checks the room for an upload that begins, and counts it among those that have begun. In a
    // tape pool an upload leaves the room that others need, see objects::OpenUploads. `blocks` is 0
    // if its size is unknown. As check_room().
    Granted<> begin_upload(objects::PoolOwner whose, store::Fid fid, std::uint64_t blocks);
    // Like begin_upload(), for a write to an upload. The upload has the room from now on until
    // upload_write_begun() or give_back(). kQuota, and it gets no room: its owner may not have the
    // blocks that it adds now. REQUIRES: the upload is not removed meanwhile.
    struct UploadPart {
        objects::PoolId pool = 0;
        objects::DiskUse::Owner* owner = nullptr;
        store::Fid fid{};
        std::uint64_t size_bytes = 0;  // The announced size of the whole upload; 0: unknown.
        store::BlockRange range{};     // The blocks of this write.
        // The size of `range`; for a write that begins the upload, the blocks of the whole upload.
        std::uint64_t blocks = 0;
    };
    Task<Granted<>> begin_upload_write(UploadPart part);
    // Called in the reactor turn in which the change begins.
    void upload_write_begun();
    // The fop has ended, and the change has given back its blocks, if it has not begun.
    void give_back() { upload_write_.give_back(); }
    // With kStagingFull: how many free blocks the disk should have.
    std::uint64_t wanted_free_blocks() const { return wanted_free_blocks_; }
    // A disk lacks so many blocks, or room for records, for an object of the pool.
    Refusal why_full(objects::PoolId pool, std::uint64_t lacking, std::string_view words);
    // Allocates up to `blocks` consecutive blocks. If the disk is full, waits until blocks that are
    // being freed become free.
    Task<Granted<store::DiskRange>> allocate(std::uint32_t blocks);
    // Allocates `count` single blocks from the reserve for changes that free more than they take:
    // all or none, so that operations do not wait for each other's blocks. REQUIRES: it holds no
    // allocated blocks.
    Task<Granted<>> allocate_to_free(std::uint32_t count);
    // kQuota if the amount is more than the owner or the pool may still have. Takes nothing.
    Granted<> check_quota(objects::PoolOwner whose, objects::Amount amount);
    // kQuota. One owner and one scope in a change.
    Granted<> charge(objects::PoolOwner whose, objects::Amount amount,
                     objects::DiskUse::Scope scope = objects::DiskUse::Scope::kPoolAndOwner);
    // Charges the owner of the object's blocks for holes that will get blocks.
    Granted<> charge_holes(store::Fid fid, store::BlockRange blocks);

private:
    bool has_tapes(objects::PoolId pool) const;
    Task<Granted<>> expect_rest_of(UploadPart part);
    Granted<> check_upload(const UploadPart& part);
    Granted<> check_quota_of_holes(const UploadPart& part);
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
