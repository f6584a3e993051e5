#include "objects/abandoned_uploads.h"

#include <algorithm>
#include <deque>
#include <string>

#include "objects/object_change.h"
#include "objects/range_locks.h"

namespace fopd::objects {

namespace {

// In one change, so that they share a flush.
constexpr std::size_t kGivenUpAtOnce = 64;

}  // namespace

Result<void> AbandonedUploads::upload(store::Fid fid, const store::Upload& /*upload*/) {
    if (is_abandoned(fid)) fids_.push_back(fid);
    return {};
}

Task<Result<void>> AbandonedUploads::between_turns() {
    for (std::size_t at = 0; at < fids_.size(); at += kGivenUpAtOnce) {
        const std::size_t count = std::min(kGivenUpAtOnce, fids_.size() - at);
        const auto given_up = co_await give_up(at, count);
        if (!given_up) co_return given_up;
    }
    fids_.clear();
    co_return Result<void>{};
}

bool AbandonedUploads::is_abandoned(store::Fid fid) const {
    return home_.uploads().is_idle_since(fid, reactor_.now() - timeout_);
}

Task<Result<void>> AbandonedUploads::give_up(std::size_t at, std::size_t count) {
    const core::WaitOptions wait{.cancel = &home_.ending()};
    // A holder of the lock of an upload takes no other lock, so there is no deadlock.
    std::deque<RangeLock> locks;
    for (std::size_t i = 0; i < count; ++i) {
        const LockRequest whole{
            .fid = fids_[at + i], .range = kWholeObject, .mode = LockMode::kExclusive};
        const auto locked = co_await home_.locks().acquire(locks.emplace_back(), whole, wait);
        if (!locked) co_return locked;
    }
    ObjectChange change(home_);
    auto room =
        co_await change.reserve(count * store::kRemoveRecordBytes, wait, store::Purpose::kFreeing);
    if (!room) co_return std::unexpected(room.error());
    std::vector<store::Fid> given_up;
    for (std::size_t i = 0; i < count; ++i) {
        const store::Fid fid = fids_[at + i];
        // It may have been written to, or committed, before it was locked.
        const auto found = home_.volume().map().find_upload(fid);
        if (!found) co_return std::unexpected(found.error());
        if (!found->has_value() || !is_abandoned(fid)) continue;
        const PoolId pool = (*found)->object.pool;
        const std::string owner((*found)->object.owner);
        const auto blocks = co_await home_.volume().count_blocks(fid, wait);
        if (!blocks) co_return std::unexpected(blocks.error());
        change.will_free({.pool = pool, .owner = owner}, {.blocks = *blocks, .objects = 1});
        change.remove(fid);
        given_up.push_back(fid);
    }
    if (given_up.empty()) co_return Result<void>{};
    const auto finished = co_await change.commit(std::move(*room));
    if (!finished) co_return std::unexpected(finished.error());
    for (const store::Fid fid : given_up) home_.uploads().gone(fid);
    co_return Result<void>{};
}

}  // namespace fopd::objects
