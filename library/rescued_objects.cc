#include "library/rescued_objects.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/time.h"
#include "objects/block_io.h"
#include "objects/disk_use.h"
#include "objects/names.h"
#include "objects/object_change.h"
#include "objects/range_locks.h"

namespace fopd::library {

namespace {

// How long others may hold its name or the object.
constexpr Duration kRescuePatience = 1min;

constexpr Error kNoStagingDisk{.code = Errc::kBusy, .context = "a disk of the staging is not here"};
constexpr Error kChangedMeanwhile{.code = Errc::kBusy,
                                  .context = "the object was changed meanwhile"};

std::uint64_t blocks_for(std::uint64_t size_bytes) {
    return (size_bytes + objects::kBlock - 1) / objects::kBlock;
}

}  // namespace

std::vector<RescuedObjects::Home> RescuedObjects::homes(objects::PoolId pool) const {
    std::vector<Home> homes;
    const objects::StoreLayout& layout = stores_.layout();
    const objects::LayoutPool* const known = layout.find_pool(pool);
    if (known == nullptr) return homes;
    for (const objects::LayoutSlot& each : layout.slots) {
        const bool takes =
            each.pool == known->disk_pool() && each.state == objects::SlotState::kOnline;
        if (takes) homes.push_back({.slot = each.slot, .locality = each.locality});
    }
    return homes;
}

Result<std::optional<store::Fid>> RescuedObjects::find(store::Fid made) const {
    for (const objects::LayoutPool& each : stores_.layout().pools) {
        if (!each.missing.empty()) return std::unexpected(kNoStagingDisk);
    }
    for (const auto& home : stores_.volumes()) {
        if (!home->volume().serving()) return std::unexpected(kNoStagingDisk);
        const auto fid = made.moved_to(home->slot());
        if (!fid) continue;
        const auto object = home->volume().map().find(*fid);
        if (!object) return std::unexpected(object.error());
        if (object->has_value()) return fid;
    }
    return std::nullopt;
}

bool RescuedObjects::gives_way(store::Fid fid) const {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr || home->has_made(fid)) return false;
    const auto object = home->volume().map().find(fid);
    return object && object->has_value() && (*object)->is_released;
}

bool RescuedObjects::has_made(store::Fid fid) const {
    const objects::HomeVolume* const home = stores_.find(fid.slot());
    return home != nullptr && home->has_made(fid);
}

// An object with the names that its change concerns.
struct RescuedObjects::Attempt {
    Attempt(objects::HomeVolume& volume, const Wish& what)
        : home(volume), hold(volume), wish(what) {}

    objects::HomeVolume& home;
    const objects::HomeVolume::Hold hold;
    const Wish& wish;
    core::WaitOptions wait{};
    std::string old_name{};  // That the object has now; empty: none, or the same.
    std::optional<objects::NameHold> held{};
    std::optional<objects::NameHold> held_old{};
    objects::RangeLock lock{};
};

Task<Result<RescuedObjects::Answer>> RescuedObjects::put(const Wish* wish) {
    objects::HomeVolume* const home = stores_.find(wish->fid.slot());
    if (home == nullptr || home->is_leaving()) co_return std::unexpected(kNoStagingDisk);
    if (!home->volume().serving()) co_return std::unexpected(home->volume().failure());
    Attempt attempt(*home, *wish);
    attempt.wait = {.deadline = after(stores_.parts().reactor.now(), kRescuePatience),
                    .cancel = &stores_.stopping()};
    const auto held = co_await hold_names(&attempt);
    Result<Answer> answer = std::unexpected(kChangedMeanwhile);
    if (held) {
        auto put = co_await put_held(&attempt);
        answer = std::move(put);
    } else {
        answer = std::unexpected(held.error());
    }
    objects::Names& names = stores_.parts().names;
    if (attempt.held) co_await names.let_go(*std::move(attempt.held));
    if (attempt.held_old) co_await names.let_go(*std::move(attempt.held_old));
    co_return answer;
}

// Of several names the first one in their order first.
Task<Result<void>> RescuedObjects::hold_names(Attempt* attempt) {
    const Wish& wish = attempt->wish;
    const auto before = attempt->home.volume().map().find(wish.fid);
    if (!before) co_return std::unexpected(before.error());
    if (before->has_value() && (*before)->name != wish.member.name) {
        attempt->old_name = (*before)->name;
    }
    objects::Names& names = stores_.parts().names;
    const objects::ObjectName name{.pool = wish.pool, .name = wish.member.name};
    const objects::ObjectName old_name{.pool = wish.pool, .name = attempt->old_name};
    const bool has_both = !name.name.empty() && !old_name.name.empty();
    const bool is_turned = has_both && names.before(old_name, name);
    const std::array<bool, 2> order{is_turned, !is_turned};
    for (const bool is_old : order) {
        const objects::ObjectName& each = is_old ? old_name : name;
        if (each.name.empty()) continue;
        auto holding =
            is_old ? names.hold_to_remove(each, attempt->wait) : names.hold(each, attempt->wait);
        auto held = co_await std::move(holding);
        // Another object has its name by now.
        const bool has_lost = is_old && !held && held.error().code == Errc::kNotFound;
        if (has_lost) continue;
        if (!held) co_return std::unexpected(held.error());
        (is_old ? attempt->held_old : attempt->held) = *std::move(held);
    }
    co_return Result<void>{};
}

Task<Result<RescuedObjects::Answer>> RescuedObjects::put_held(Attempt* attempt) {
    const Wish& wish = attempt->wish;
    std::optional<objects::NamedObject> owner;
    if (attempt->held) owner = attempt->held->owner;
    const bool is_taken = owner && owner->fid != wish.fid;
    if (is_taken && owner->version < wish.member.name_version && wish.over != owner->fid) {
        co_return Answer{.how = How::kTaken, .by = owner->fid};
    }
    if (is_taken && owner->version >= wish.member.name_version) {
        co_return Answer{.how = How::kOlder, .by = owner->fid};
    }
    const objects::LockRequest whole{
        .fid = wish.fid, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive};
    const auto locked = co_await attempt->home.locks().acquire(attempt->lock, whole, attempt->wait);
    if (!locked) co_return std::unexpected(locked.error());
    store::ObjectMap& map = attempt->home.volume().map();
    if (attempt->home.volume().is_uncertain(wish.fid)) co_return std::unexpected(kChangedMeanwhile);
    const auto upload = map.find_upload(wish.fid);
    if (!upload) co_return std::unexpected(upload.error());
    if (upload->has_value()) co_return Answer{.how = How::kExists};
    const auto found = map.find(wish.fid);
    if (!found) co_return std::unexpected(found.error());
    if (!found->has_value()) {
        if (!attempt->old_name.empty()) co_return std::unexpected(kChangedMeanwhile);
        co_return co_await make(attempt);
    }
    const store::Object& object = **found;
    const std::uint64_t content = object.content_version();
    if (content == wish.member.version) co_return co_await add_copies(attempt);
    if (content > wish.member.version) co_return Answer{.how = How::kOlder};
    const bool is_rescued = object.is_released && object.changed.unix_ns <= wish.member.changed_ns;
    if (!is_rescued) co_return Answer{.how = How::kExists};
    const std::string_view expected =
        attempt->old_name.empty() ? std::string_view(wish.member.name) : attempt->old_name;
    if (object.name != expected) co_return std::unexpected(kChangedMeanwhile);
    co_return co_await make(attempt);
}

// Adds the copies to an object that has the same content. Equal versions do not prove that the
// content is the same: a change on this node may have used a version that the lost node has used,
// too. So the copies have to be the same.
Task<Result<RescuedObjects::Answer>> RescuedObjects::add_copies(Attempt* attempt) {
    const Wish& wish = attempt->wish;
    store::Volume& volume = attempt->home.volume();
    const auto known = volume.copies_of(wish.fid);
    if (!known) co_return std::unexpected(known.error());
    for (const store::Copy& each : wish.copies) {
        const bool is_same = std::ranges::any_of(*known, [&each](const store::Copy& other) {
            return other.offset == each.offset && other.length == each.length &&
                   other.checksum == each.checksum;
        });
        if (!is_same) co_return Answer{.how = How::kExists};
    }
    const auto added = co_await volume.add_copies(wish.copies, attempt->wait);
    if (!added) co_return std::unexpected(added.error());
    co_return Answer{.how = How::kCopied};
}

Task<Result<RescuedObjects::Answer>> RescuedObjects::make(Attempt* attempt) {
    const Wish& wish = attempt->wish;
    const store::Member& member = wish.member;
    objects::ObjectChange change(attempt->home);
    auto room =
        co_await change.reserve(store::Volume::from_tape_bytes(wish.copies.size()), attempt->wait);
    if (!room) co_return std::unexpected(room.error());
    const std::uint64_t blocks = blocks_for(member.object_bytes);
    const store::Object object{.size_bytes = member.object_bytes,
                               .version = member.version,
                               .created = {member.created_ns},
                               .changed = {member.changed_ns},
                               .pool = wish.pool,
                               .mode = member.mode,
                               .is_released = true,
                               .released_blocks = blocks,
                               .owner = member.owner,
                               .group = member.group,
                               .name = member.name,
                               // By it the newest of several objects that had the name has it.
                               .name_version = member.name.empty() ? 0 : member.name_version,
                               .collection = member.collection};
    const auto before = attempt->home.volume().map().find(wish.fid);
    if (!before) co_return std::unexpected(before.error());
    if (before->has_value()) {
        const store::Object& old = **before;
        if (old.pool != wish.pool) co_return Answer{.how = How::kExists};
        change.will_free(objects::owner_of(old), {.blocks = old.released_blocks, .objects = 1});
    } else {
        change.will_come(wish.fid, wish.pool);
    }
    change.will_count(objects::owner_of(object), {.blocks = blocks, .objects = 1});
    const auto filled = change.put_from_tape(wish.fid, object, wish.copies);
    if (!filled) co_return std::unexpected(filled.error());
    const auto finished = co_await change.commit(std::move(*room));
    if (!finished) co_return std::unexpected(finished.error());
    co_return Answer{.how = How::kMade};
}

}  // namespace fopd::library
