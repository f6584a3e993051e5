#include "reqh/change_space.h"

#include <algorithm>
#include <utility>

#include "library/library.h"
#include "objects/block_io.h"
#include "reqh/write_plan.h"

namespace fopd::reqh {

Granted<> ChangeSpace::check_room(objects::PoolId pool, std::uint64_t blocks) {
    const std::uint64_t free = fop_.volume().space_use().room_blocks();
    if (blocks <= free) return {};
    return refused(
        why_full(pool, blocks - free, "not enough space left on the disk of the object"));
}

Granted<> ChangeSpace::check_staging(objects::PoolId pool, store::Fid fid, std::uint64_t blocks) {
    if (!has_tapes(pool)) return {};
    const auto fits = check_room(pool, blocks);
    const bool never_fits = !fits && fits.error().status == fop::Status::kNoSpace;
    if (never_fits) return fits;
    return check_beside_uploads(pool, fid, blocks);
}

Granted<> ChangeSpace::check_beside_uploads(objects::PoolId pool, store::Fid fid,
                                            std::uint64_t blocks) {
    if (!has_tapes(pool)) return {};
    const store::SpaceUse space = fop_.volume().space_use();
    const objects::OpenUploads::Asked asked{
        .owner = &fop_.home().use().owner(change_.block_owner()),
        .blocks = blocks,
        .key = {.fid = fid},
        .deadline = fop_.deadline()};
    return check_available(fop_.home().uploads().change_needs(asked, space, fop_.reactor().now()),
                           space);
}

Granted<> ChangeSpace::begin_upload(objects::PoolOwner whose, store::Fid fid,
                                    std::uint64_t blocks) {
    if (!has_tapes(whose.pool)) return check_room(whose.pool, blocks);
    objects::DiskUse::Owner& owner = fop_.home().use().owner(whose);
    const auto fits =
        check_upload({.pool = whose.pool, .owner = &owner, .fid = fid, .blocks = blocks});
    if (!fits) return fits;
    // At once: others may begin before this one is recorded.
    objects::OpenUploads& uploads = fop_.home().uploads();
    uploads.expect(fid, {.owner = &owner, .left_blocks = blocks, .is_unknown = blocks == 0});
    uploads.stay(fid, fop_.volume().space_use(), fop_.reactor().now());
    return fits;
}

Task<Granted<>> ChangeSpace::begin_upload_write(UploadPart part) {
    // First: one that is refused for its quota must not take room from others meanwhile.
    objects::BlockSet wanted;
    wanted.add(part.range);
    const auto counted = count_blocks_in_flight(part.fid, std::move(wanted));
    if (!counted) co_return counted;
    if (!has_tapes(part.pool)) co_return Granted<>{};
    objects::OpenUploads& uploads = fop_.home().uploads();
    if (!uploads.expects(part.fid)) {
        const auto expected = co_await expect_rest_of(part);
        if (!expected) co_return expected;
    }
    const auto fits = check_upload(part);
    if (fits) {
        upload_write_.begin(uploads, part.fid, part.blocks);
    } else if (fits.error().status == fop::Status::kStagingFull) {
        // One that waits for room is not idle.
        uploads.stay(part.fid, fop_.volume().space_use(), fop_.reactor().now());
    }
    co_return fits;
}

void ChangeSpace::upload_write_begun() {
    upload_write_.done(fop_.volume().space_use(), fop_.reactor().now());
}

// The upload began before the daemon started.
Task<Granted<>> ChangeSpace::expect_rest_of(UploadPart part) {
    const std::uint64_t size = (part.size_bytes + objects::kBlock - 1) / objects::kBlock;
    const auto there = co_await fop_.volume().count_blocks(part.fid, fop_.wait());
    if (!there) co_return refused(untraced(there.error()));
    const std::uint64_t left = size - std::min(size, *there);
    // Another write to it may have done the same meanwhile.
    objects::OpenUploads& uploads = fop_.home().uploads();
    if (!uploads.expects(part.fid)) {
        uploads.expect(part.fid, {.owner = part.owner,
                                  .left_blocks = left,
                                  .is_unknown = size == 0,
                                  .written_blocks = *there});
    }
    co_return Granted<>{};
}

Granted<> ChangeSpace::check_upload(const UploadPart& part) {
    const auto fits = check_room(part.pool, part.blocks);
    const bool never_fits = !fits && fits.error().status == fop::Status::kNoSpace;
    if (never_fits) return fits;
    const store::SpaceUse space = fop_.volume().space_use();
    // An upload that begins has no id yet by which it would be recognised.
    const bool begins = part.range.count == 0;
    const objects::RoomLine::Key as_new{.client = {fop_.caller().owner}, .blocks = part.blocks};
    const objects::OpenUploads::Asked asked{
        .owner = part.owner,
        .blocks = part.blocks,
        .key = begins ? as_new : objects::RoomLine::Key{.fid = part.fid},
        .deadline = fop_.deadline()};
    const Instant now = fop_.reactor().now();
    return check_available(fop_.home().uploads().upload_needs(part.fid, asked, space, now), space);
}

Granted<> ChangeSpace::check_available(std::uint64_t needed, const store::SpaceUse& space) {
    if (needed <= space.room_blocks()) return {};
    wanted_free_blocks_ = std::min(needed, space.data_blocks());
    return refused(fop::Status::kStagingFull, fop::status_row(fop::Status::kStagingFull).summary);
}

bool ChangeSpace::has_tapes(objects::PoolId pool) const {
    const library::LibraryDoor* const door = fop_.origin().library;
    if (door == nullptr || door->service == nullptr) return false;
    const objects::LayoutPool* const found = fop_.stores().layout().find_pool(pool);
    return found != nullptr && found->is_on_tape();
}

// The reason depends on whether the space can ever become free: data larger than the disk never
// fit.
Refusal ChangeSpace::why_full(objects::PoolId pool, std::uint64_t lacking, std::string_view words) {
    const store::SpaceUse use = fop_.volume().space_use();
    wanted_free_blocks_ = use.room_blocks() + lacking;
    if (!has_tapes(pool) || wanted_free_blocks_ > use.data_blocks()) {
        return {.status = fop::Status::kNoSpace, .words = words};
    }
    return {.status = fop::Status::kStagingFull,
            .words = fop::status_row(fop::Status::kStagingFull).summary};
}

Task<Granted<store::DiskRange>> ChangeSpace::allocate(std::uint32_t blocks) {
    const Waiting waiting = fop_.waits_for({.what = WaitsFor::kSpace});
    const auto range = co_await change_.allocate(blocks, fop_.wait());
    if (!range) co_return refused(why_no_space(range.error(), blocks));
    upload_write_.took(range->count);
    co_return *range;
}

Task<Granted<>> ChangeSpace::allocate_to_free(std::uint32_t count) {
    const Waiting waiting = fop_.waits_for({.what = WaitsFor::kSpace});
    const auto allocated = co_await change_.allocate_to_free(count, fop_.wait());
    if (!allocated) co_return refused(why_no_space(allocated.error(), count));
    co_return Granted<>{};
}

Refusal ChangeSpace::why_no_space(const Error& error, std::uint64_t blocks) {
    if (error.code != Errc::kNoSpace) return untraced(error);
    return why_full(change_.block_owner().pool, blocks, "there is no space left on its disk");
}

Granted<> ChangeSpace::check_quota(objects::PoolOwner whose, objects::Amount amount) {
    objects::DiskUse& use = fop_.home().use();
    const auto verdict = use.check(use.owner(whose), amount);
    if (verdict == objects::DiskUse::Verdict::kTaken) return {};
    return refused(why_over_quota(whose, amount, verdict));
}

Granted<> ChangeSpace::charge(objects::PoolOwner whose, objects::Amount amount,
                              objects::DiskUse::Scope scope) {
    const auto verdict = change_.charge(whose, amount, scope);
    if (verdict == objects::DiskUse::Verdict::kTaken) return {};
    return refused(why_over_quota(whose, amount, verdict));
}

Granted<> ChangeSpace::count_in_flight(store::Fid fid, std::span<const fop::Range> ranges) {
    objects::BlockSet wanted;
    for (const fop::Range& each : ranges) wanted.add(blocks_of(std::span(&each, 1)));
    return count_blocks_in_flight(fid, std::move(wanted));
}

Granted<> ChangeSpace::count_blocks_in_flight(store::Fid fid, objects::BlockSet wanted) {
    const auto counted = change_.count_in_flight(fid, std::move(wanted));
    if (!counted) return refused(counted.error());
    return check_counted(*counted);
}

Granted<> ChangeSpace::count_append_in_flight(store::Fid fid, std::uint64_t size_bytes,
                                              std::uint64_t append_bytes) {
    const auto blocks = [](std::uint64_t bytes) {
        return bytes / fop::kBlockBytes + (bytes % fop::kBlockBytes == 0 ? 0 : 1);
    };
    const store::ReplyKey request{.client = {fop_.caller().owner},
                                  .request_number = fop_.request().id};
    return check_counted(change_.count_append_in_flight(
        fid, request, blocks(size_bytes + append_bytes) - blocks(size_bytes)));
}

Granted<> ChangeSpace::check_counted(const objects::ObjectChange::Counted& counted) {
    if (counted.verdict == objects::DiskUse::Verdict::kTaken) return {};
    return refused(
        why_over_quota(change_.block_owner(), {.blocks = counted.blocks}, counted.verdict));
}

Granted<> ChangeSpace::charge_holes(store::Fid fid, store::BlockRange blocks) {
    const auto charged = change_.charge_holes(fid, blocks);
    if (!charged) return refused(charged.error());
    if (charged->verdict == objects::DiskUse::Verdict::kTaken) {
        upload_write_.counted(blocks.count, charged->blocks);
        return {};
    }
    return refused(
        why_over_quota(change_.block_owner(), {.blocks = charged->blocks}, charged->verdict));
}

Refusal ChangeSpace::why_over_quota(objects::PoolOwner whose, objects::Amount wanted,
                                    objects::DiskUse::Verdict verdict) {
    const objects::LayoutPool* const pool = fop_.stores().layout().find_pool(whose.pool);
    const std::string_view pool_name = pool == nullptr ? std::string_view() : pool->name;
    return words_.over_quota(fop_.home().use().owner(whose), pool_name, wanted, verdict);
}

}  // namespace fopd::reqh
