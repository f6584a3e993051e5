#include "reqh/replaced_objects.h"

#include <utility>

#include "reqh/home_volume.h"
#include "reqh/range_locks.h"
#include "reqh/remote_task.h"

namespace fopd::reqh {

namespace {

constexpr Duration kRetryAfter = 1s;

// At the object's home. What is no longer there, or has another name by now, stays.
Task<Result<void>> remove_at_home(Stores* stores, store::NameClaim claim) {
    HomeVolume* const home = stores->find(claim.fid.slot());
    if (home == nullptr) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the disk"});
    }
    const HomeVolume::Hold hold(*home);
    const core::WaitOptions wait{.cancel = &stores->stopping()};
    RangeLock lock;
    const LockRequest whole{.fid = claim.fid, .range = kWholeObject, .mode = LockMode::kExclusive};
    const auto locked = co_await home->locks().acquire(lock, whole, wait);
    if (!locked) co_return locked;
    store::Volume& volume = home->volume();
    auto room = co_await volume.reserve(store::kRemoveRecordBytes, wait);
    if (!room) co_return std::unexpected(room.error());
    const auto object = volume.map().find(claim.fid);
    if (!object) co_return std::unexpected(object.error());
    const bool is_it = object->has_value() && (*object)->name == claim.name &&
                       (*object)->name_version == claim.version;
    if (!is_it) co_return Result<void>{};
    DiskUse::Owner& owner = home->use().owner((*object)->owner);
    const auto blocks = co_await volume.count_blocks(claim.fid, wait);
    if (!blocks) co_return std::unexpected(blocks.error());
    store::Change change;
    change.records.remove(claim.fid);
    const Result<void> begun =
        volume.begin(change, std::move(*room), store::Durability::kDurable, store::Data::kNone);
    if (!begun) co_return begun;
    home->has_gone(claim.fid);
    const auto finished = co_await volume.finish(&change);
    if (!finished) co_return std::unexpected(finished.error());
    home->use().put_back(owner, {.blocks = *blocks, .objects = 1}, DiskUse::Scope::kPoolAndOwner);
    co_return Result<void>{};
}

}  // namespace

void ReplacedObjects::start() {
    stores_.parts().reactor.spawn(stores_.duties(), run());
}

void ReplacedObjects::look_again() {
    part_.shard().look_at_replaced_again();
}

Task<void> ReplacedObjects::run() {
    const core::WaitOptions wait{.cancel = &stores_.stopping()};
    while (!stores_.stopping().cancelled()) {
        const std::uint64_t known = part_.shard().replaced_count();
        behind_.reset();
        Result<void> removed{};
        do {
            removed = co_await remove_page();
        } while (removed && behind_ && !stores_.stopping().cancelled());
        if (!removed) {
            const auto slept =
                co_await stores_.parts().reactor.sleep_for(kRetryAfter, &stores_.stopping());
            if (!slept) co_return;
            continue;
        }
        const auto more = co_await part_.shard().wait_replaced(known, wait);
        if (!more) co_return;
    }
}

Task<Result<void>> ReplacedObjects::remove_page() {
    store::NameShard::Replaced which{.behind = std::exchange(behind_, std::nullopt)};
    auto task = part_.shard().replaced(std::move(which));
    const auto page = co_await std::move(task);
    if (!page) co_return std::unexpected(page.error());
    Result<void> all{};
    for (std::size_t i = 0; i < page->claims.size(); ++i) {
        if (stores_.stopping().cancelled()) co_return Result<void>{};
        store::NameClaim claim = page->claims[i];
        const auto removed = co_await remove(std::move(claim));
        // Of the log: there will be some.
        if (!removed && removed.error().code == Errc::kNoSpace) all = removed;
    }
    if (!page->end && !page->claims.empty()) behind_ = page->claims.back();
    co_return all;
}

// One whose disk is missing, or takes no changes, stays until there is a better one.
Task<Result<void>> ReplacedObjects::remove(store::NameClaim claim) {
    const SlotPlace* const place = stores_.layout().find_slot(claim.fid.slot());
    if (place == nullptr) co_return Result<void>{};
    Stores& home = stores_.at(place->locality);
    auto job = [&home, &claim] { return remove_at_home(&home, claim); };
    const auto removed = co_await run_task_on<Result<void>>(
        stores_.parts().reactor, home.parts().reactor, home.duties(), job);
    co_return removed.value_or(Result<void>{});
}

}  // namespace fopd::reqh
