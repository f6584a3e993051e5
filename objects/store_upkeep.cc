#include "objects/store_upkeep.h"

#include <string>

#include "core/events.h"
#include "objects/abandoned_uploads.h"
#include "objects/old_replies.h"

namespace fopd::objects {

void StoreUpkeep::start() {
    for (const auto& home : stores_.volumes()) count(home->slot());
    stores_.parts().reactor.spawn(stores_.duties(), run());
}

Task<void> StoreUpkeep::run() {
    while (!stores_.stopping().cancelled()) {
        for (const auto& home : stores_.volumes()) {
            if (!busy_.insert(home->slot()).second) continue;
            stores_.parts().reactor.spawn(stores_.duties(), look_after(home->slot()));
        }
        const auto slept =
            co_await stores_.parts().reactor.sleep_for(interval_, &stores_.stopping());
        if (!slept) co_return;
    }
}

void StoreUpkeep::count(store::Slot slot) {
    stores_.parts().reactor.spawn(stores_.duties(), count_objects(slot));
}

Task<void> StoreUpkeep::count_objects(store::Slot slot) {
    HomeVolume* const home = stores_.find(slot);
    if (home == nullptr) co_return;
    const HomeVolume::Hold hold(*home);
    const auto counted =
        co_await home->volume().map().for_each(store::KeyKind::kObject, &home->objects());
    if (counted) home->objects().all_seen();
    report(*home, "count objects", counted);
}

Task<void> StoreUpkeep::look_after(store::Slot slot) {
    HomeVolume* const home = stores_.find(slot);
    const bool is_there = home != nullptr && !home->is_leaving() && home->volume().serving();
    if (is_there) co_await look_after_held(home);
    busy_.erase(slot);
}

Task<void> StoreUpkeep::look_after_held(HomeVolume* home) {
    const HomeVolume::Hold hold(*home);
    const auto forgotten = co_await forget_replies(home);
    report(*home, "forget replies", forgotten);
    const auto given_up = co_await give_up_uploads(home);
    report(*home, "give up uploads", given_up);
}

// A disk that fails or is full reports that itself.
void StoreUpkeep::report(const HomeVolume& home, std::string_view task,
                         const Result<void>& result) {
    if (result || !home.volume().serving()) return;
    const Errc code = result.error().code;
    if (code == Errc::kCancelled || code == Errc::kNoSpace || code == Errc::kClosed) return;
    const std::string reason = fopd::describe(result.error());
    core::emit(stores_.parts().events, core::Level::kError, "store.upkeep_failed",
               {{"device", home.device_name()},
                {"slot", std::uint64_t{home.slot()}},
                {"task", task},
                {"reason", std::string_view(reason)}});
}

Task<Result<void>> StoreUpkeep::forget_replies(HomeVolume* home) {
    OldReplies old(*home, home->service_time() - options_.replies_kept);
    store::MapVisitor* const visitor = &old;
    const auto looked = co_await home->volume().map().for_each(store::KeyKind::kReply, visitor);
    co_return looked;
}

Task<Result<void>> StoreUpkeep::give_up_uploads(HomeVolume* home) {
    home->uploads().mark(home->newest_fid(), now(), options_.upload_timeout);
    AbandonedUploads abandoned(*home, stores_.parts().reactor, options_.upload_timeout);
    store::MapVisitor* const visitor = &abandoned;
    const auto looked = co_await home->volume().map().for_each(store::KeyKind::kUpload, visitor);
    co_return looked;
}

}  // namespace fopd::objects
