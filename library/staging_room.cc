// How objects are released from the disks: on request, and to make room for others.

#include <algorithm>

#include "library/staging_disks.h"
#include "objects/range_locks.h"

namespace fopd::library {

namespace {

// The time limit for the release of an object, which may be in use.
constexpr Duration kReleasePatience = 100ms;
// How long a recalled object stays on the disk for clients that have not read it yet. Waiting
// clients are told at once, and a client that was disconnected asks again within this time.
constexpr Duration kReturnedStays = 30s;
// How long room is made on a disk after the last change that did not fit.
constexpr Duration kRoomIsWanted = 30s;
// The pause after a scan of a disk's objects: kReleasePause times as long as the scan took, between
// kReleasePauseMin and kReleasePauseMax.
constexpr int kReleasePause = 4;
constexpr Duration kReleasePauseMin = 1s;
constexpr Duration kReleasePauseMax = 20s;
constexpr Error kNotOfTapePool{.code = Errc::kInvalid,
                               .context = "the object's pool is not a tape pool of this node"};

std::uint64_t percent(const store::SpaceUse& use) {
    const std::uint64_t data = use.data_blocks();
    return data == 0 ? 0 : use.used_blocks * 100 / data;
}

}  // namespace

Task<Result<void>> StagingDisks::release(store::Fid fid, core::WaitOptions wait) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "there is no such object"});
    }
    const auto found = home->volume().map().find(fid);
    if (!found) co_return std::unexpected(found.error());
    // First, because an open library does not help.
    const bool is_on_disk = found->has_value() && !(*found)->is_released;
    if (is_on_disk && tape_pool((*found)->pool) == nullptr) {
        co_return std::unexpected(kNotOfTapePool);
    }
    if (!knows_media_) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the tape library is not open"});
    }
    const objects::HomeVolume::Hold hold(*home);
    co_return co_await release_from(home, fid, wait);
}

Task<Result<void>> StagingDisks::release_from(objects::HomeVolume* home, store::Fid fid,
                                              core::WaitOptions wait) {
    ++release_tries_;
    objects::RangeLock lock;
    const objects::LockRequest whole{
        .fid = fid, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive};
    const auto locked = co_await home->locks().acquire(lock, whole, wait);
    if (!locked) co_return locked;
    const auto found = home->volume().map().find(fid);
    if (!found) co_return std::unexpected(found.error());
    if (!found->has_value()) {
        co_return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "there is no such object"});
    }
    if ((*found)->is_released || (*found)->size_bytes == 0) co_return Result<void>{};
    const std::uint64_t version = (*found)->content_version();
    const std::uint64_t size_bytes = (*found)->size_bytes;
    const std::uint32_t wanted = copies_wanted((*found)->pool);
    if (tape_pool((*found)->pool) == nullptr) {
        co_return std::unexpected(kNotOfTapePool);
    }
    const auto recall = home->volume().map().find_recall(fid);
    if (!recall) co_return std::unexpected(recall.error());
    const std::int64_t wall_ns = stores_.parts().clock.wall().unix_ns;
    const bool is_pinned = recall->has_value() && (*recall)->pinned_until.unix_ns > wall_ns;
    if (is_pinned) {
        co_return std::unexpected(Error{.code = Errc::kBusy, .context = "the object is pinned"});
    }
    const auto is_good = is_on_good_media(*home, **found, fid);
    if (!is_good) co_return std::unexpected(is_good.error());
    if (!*is_good) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "no readable cartridge has the object"});
    }
    const auto copies = home->volume().copies_of(fid);
    if (!copies) co_return std::unexpected(copies.error());
    if (!have_copies(*copies, wanted, 0, size_bytes)) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the object is not on tape yet"});
    }
    const auto released = co_await home->volume().release(fid, version, wait);
    if (!released) {
        Error error = released.error();
        if (error.code == Errc::kInvalid) {
            error = {.code = Errc::kBusy, .context = "the object is not on tape yet"};
        }
        co_return std::unexpected(error);
    }
    ++released_count_;
    staged_.forget(fid);
    co_return Result<void>{};
}

// Whether the copies on good cartridges have all bytes of the object. True if it has no copies.
Result<bool> StagingDisks::is_on_good_media(objects::HomeVolume& home, const store::Object& object,
                                            store::Fid fid, std::optional<store::VsnText> without) {
    const auto copies = home.volume().copies_of(fid);
    if (!copies) return std::unexpected(copies.error());
    std::vector<store::CopyKey> others;
    for (const store::Copy& each : *copies) {
        const auto known = media_.find(each.cartridge.vsn);
        const bool is_good = each.cartridge.vsn != without && known != media_.end() &&
                             known->second.is_good &&
                             known->second.generation == each.cartridge.generation;
        if (!is_good) others.push_back(store::key_of(each));
    }
    if (others.empty()) return true;
    std::ranges::sort(others);
    return home.volume().map().copies().cover(fid, object, others);
}

// The lowest staging_high of the pools that use this disk; 0: none has one.
std::uint32_t StagingDisks::high_mark(const objects::HomeVolume& home) const {
    std::uint32_t mark = 0;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
        if (staging_ids_[i] != home.pool() || pools_[i].staging_high == 0) continue;
        mark = mark == 0 ? pools_[i].staging_high : std::min(mark, pools_[i].staging_high);
    }
    return mark;
}

std::uint32_t StagingDisks::low_mark(const objects::HomeVolume& home) const {
    std::uint32_t mark = 100;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
        if (staging_ids_[i] == home.pool()) mark = std::min(mark, pools_[i].staging_low);
    }
    return mark;
}

bool StagingDisks::lacks_room(const objects::HomeVolume& home) const {
    const auto wanted = wanted_room_.find(home.slot());
    if (wanted == wanted_room_.end() || wanted->second.until < now()) return false;
    return home.volume().space_use().room_blocks() < wanted->second.free_blocks;
}

bool StagingDisks::should_leave(const objects::HomeVolume& home) const {
    const bool has_marks = high_mark(home) > 0;
    return lacks_room(home) || (has_marks && percent(home.volume().space_use()) >= low_mark(home));
}

// Whether a staging disk of the pool lacks room for a change.
bool StagingDisks::is_urgent(objects::PoolId pool) const {
    const auto found = std::ranges::find(pool_ids_, pool);
    if (found == pool_ids_.end()) return false;
    const objects::PoolId staging =
        staging_ids_[static_cast<std::size_t>(found - pool_ids_.begin())];
    return std::ranges::any_of(stores_.volumes(), [this, staging](const auto& home) {
        return home->pool() == staging && lacks_room(*home);
    });
}

void StagingDisks::want_room(store::Slot slot, std::uint64_t free_blocks) {
    WantedRoom& wanted = wanted_room_[slot];
    const bool is_new = wanted.until < now();
    wanted.free_blocks = is_new ? free_blocks : std::max(wanted.free_blocks, free_blocks);
    wanted.until = after(now(), kRoomIsWanted);
    keep_room(slot);
    if (is_new) ring();
}

bool StagingDisks::is_too_full(const objects::HomeVolume& home) const {
    const std::uint32_t mark = high_mark(home);
    return lacks_room(home) || (mark > 0 && percent(home.volume().space_use()) >= mark);
}

// Begins to release objects from the disk if it is too full.
void StagingDisks::keep_room(store::Slot slot) {
    const objects::HomeVolume* const home = stores_.find(slot);
    if (home == nullptr || stores_.duties().closed() || !knows_media_) return;
    if (const auto at = releasing_.find(slot); at != releasing_.end()) {
        at->second = true;
        return;
    }
    if (!is_too_full(*home) || !staged_.oldest_with_copy({}, slot)) return;
    releasing_.emplace(slot, false);
    stores_.parts().reactor.spawn(stores_.duties(), release_oldest(slot));
}

void StagingDisks::keep_returned(store::Fid fid, std::span<const store::ClientId> readers) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) return;
    const auto object = home->volume().map().find(fid);
    if (!object || !object->has_value()) return;
    const bool goes_on = returned_.next_due().has_value();
    returned_.add(
        {.fid = fid, .size_bytes = (*object)->size_bytes, .until = after(now(), kReturnedStays)},
        readers);
    if (goes_on || stores_.duties().closed()) return;
    stores_.parts().reactor.spawn(stores_.duties(), let_returned_go());
}

Task<void> StagingDisks::let_returned_go() {
    for (auto next = returned_.next_due(); next; next = returned_.next_due()) {
        if (objects::HomeVolume* const home = stores_.find(next->fid.slot())) {
            const objects::HomeVolume::Hold hold(*home);
            // The removal of the disk ends the wait.
            [[maybe_unused]] const auto slept =
                co_await stores_.parts().reactor.sleep_until(next->until, &home->ending());
        }
        returned_.end(*next);
        keep_room(next->fid.slot());
        room_may_have_come(next->fid.slot());
    }
}

void StagingDisks::note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes) {
    if (!returned_.note_read(fid, reader, bytes, after(now(), kReturnedStays))) return;
    keep_room(fid.slot());
    room_may_have_come(fid.slot());
}

// Tells the library, if a recall has found no room on the disk: an object was removed or released,
// or may be released now.
void StagingDisks::room_may_have_come(store::Slot slot) {
    if (lacking_room_.erase(slot) == 0) return;
    rooms_.push_back(slot);
    ring();
}

// Releases objects until the disk is not too full. Each change may make a further object
// releasable; while none is, the pauses keep the cost of many changes low.
Task<void> StagingDisks::release_oldest(store::Slot slot) {
    objects::HomeVolume* const home = stores_.find(slot);
    if (home != nullptr) {
        const objects::HomeVolume::Hold hold(*home);
        for (;;) {
            releasing_[slot] = false;
            const Instant begin = now();
            co_await release_some(home);
            if (!is_too_full(*home)) break;
            const Duration pause =
                std::clamp(kReleasePause * (now() - begin), kReleasePauseMin, kReleasePauseMax);
            const auto slept = co_await stores_.parts().reactor.sleep_for(pause, &home->ending());
            if (!slept || !releasing_[slot]) break;
        }
    }
    releasing_.erase(slot);
}

Task<void> StagingDisks::release_some(objects::HomeVolume* home) {
    const store::Slot slot = home->slot();
    auto next = staged_.oldest_with_copy({}, slot);
    while (next && should_leave(*home) && !home->ending().cancelled()) {
        const core::WaitOptions wait{.deadline = after(now(), kReleasePatience),
                                     .cancel = &home->ending()};
        // Objects that are pinned or in use stay.
        if (!returned_.contains(next->fid)) {
            [[maybe_unused]] const auto released = co_await release_from(home, next->fid, wait);
        }
        co_await stores_.parts().reactor.maybe_yield();
        next = staged_.oldest_with_copy(next, slot);
    }
}

Task<Result<void>> StagingDisks::make_room(store::Slot slot, std::uint64_t free_blocks,
                                           core::WaitOptions wait) {
    objects::HomeVolume* const home = stores_.find(slot);
    const Error full{.code = Errc::kNoSpace,
                     .context = "the disk is full, and no object on it can be released"};
    if (home == nullptr) co_return std::unexpected(full);
    const objects::HomeVolume::Hold hold(*home);
    const auto has_room = [home, free_blocks] {
        return home->volume().space_use().room_blocks() >= free_blocks;
    };
    // Before the scan: an object that was passed because it was in use may become releasable during
    // the scan. It stays when the scan finds room, as another recall may have found none meanwhile.
    if (!has_room()) lacking_room_.insert(slot);
    // So much is free only when recalls have given up their room: no release helps.
    if (free_blocks > home->volume().space_use().data_blocks()) co_return std::unexpected(full);
    for (auto next = staged_.oldest_with_copy({}, slot); next && !has_room();
         next = staged_.oldest_with_copy(next, slot)) {
        co_await stores_.parts().reactor.maybe_yield();
        if (returned_.contains(next->fid)) continue;
        core::WaitOptions one = wait;
        one.deadline = std::min(wait.deadline, after(now(), kReleasePatience));
        const auto released = co_await release_from(home, next->fid, one);
        if (!released && released.error().code == Errc::kCancelled) co_return released;
    }
    if (has_room()) co_return co_await home->volume().settle_space(wait);
    want_room(slot, free_blocks);
    lacking_room_.insert(slot);
    co_return std::unexpected(full);
}

}  // namespace fopd::library
