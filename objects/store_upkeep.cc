#include "objects/store_upkeep.h"

#include <algorithm>
#include <array>
#include <utility>

#include "objects/abandoned_uploads.h"
#include "objects/object_change.h"

namespace fopd::objects {

namespace {

// In one change, all of which is made in one turn.
constexpr std::size_t kForgottenAtOnce = 64;

// Forgets the replies up to a stamp as they are shown.
class OldReplies final : public store::MapVisitor {
public:
    // Requires: the disk is held.
    OldReplies(HomeVolume& home, std::int64_t up_to)
        : home_(home), up_to_(up_to), wait_{.cancel = &home.ending()} {}

    Result<void> reply(const store::ReplyRecord& record) override {
        newest_ = std::max(newest_, record.made.unix_ns);
        if (is_old(record)) keys_.push_back(record.key);
        return {};
    }

    Task<Result<void>> between_turns() override {
        for (std::size_t at = 0; at < keys_.size(); at += kForgottenAtOnce) {
            const std::size_t count = std::min(kForgottenAtOnce, keys_.size() - at);
            const auto forgotten = co_await forget(at, count);
            if (!forgotten) co_return forgotten;
        }
        keys_.clear();
        co_return Result<void>{};
    }

    std::int64_t newest() const { return newest_; }

private:
    Task<Result<void>> forget(std::size_t at, std::size_t count) {
        ObjectChange change(home_);
        auto room = co_await change.reserve(count * store::kForgetRecordBytes, wait_,
                                            store::Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        std::array<store::ClientId, kForgottenAtOnce> whose;
        for (const store::ReplyKey& key : std::span(keys_).subspan(at, count)) {
            // Another may have its place by now.
            const auto found = home_.volume().map().find_reply(key);
            if (!found) co_return std::unexpected(found.error());
            const bool is_there = found->has_value() && is_old(**found);
            if (!is_there) continue;
            whose[change.records().count()] = key.client;
            change.records().forget(store::Key::reply(key));
        }
        if (change.records().count() == 0) co_return Result<void>{};
        const std::size_t forgotten = change.records().count();
        const Result<void> begun =
            change.begin(std::move(*room), store::Durability::kDurable, store::Data::kNone);
        if (!begun) co_return begun;
        for (const store::ClientId& client : std::span(whose).first(forgotten)) {
            home_.reply_shares().give_back(client);
        }
        const auto finished = co_await change.finish();
        if (!finished) co_return std::unexpected(finished.error());
        co_return Result<void>{};
    }

    bool is_old(const store::ReplyRecord& record) const { return record.made.unix_ns <= up_to_; }

    HomeVolume& home_;
    const std::int64_t up_to_;
    const core::WaitOptions wait_;
    std::vector<store::ReplyKey> keys_;  // Of one turn.
    std::int64_t newest_ = 0;
};

}  // namespace

void StoreUpkeep::start() {
    stores_.parts().reactor.spawn(stores_.duties(), run());
}

Task<void> StoreUpkeep::run() {
    for (const store::Slot slot : slots()) {
        const auto counted = co_await count_objects(slot);
        if (!counted && counted.error().code == Errc::kCancelled) co_return;
    }
    while (!stores_.stopping().cancelled()) {
        for (const store::Slot slot : slots()) {
            // A disk that fails takes no more changes, and says so itself.
            [[maybe_unused]] const auto done = co_await look_after(slot);
        }
        const auto slept =
            co_await stores_.parts().reactor.sleep_for(interval_, &stores_.stopping());
        if (!slept) co_return;
    }
}

void StoreUpkeep::count(store::Slot slot) {
    stores_.parts().reactor.spawn(stores_.duties(), count_later(slot));
}

Task<void> StoreUpkeep::count_later(store::Slot slot) {
    // Of what cannot be counted its fops will say so.
    [[maybe_unused]] const auto counted = co_await count_objects(slot);
}

std::vector<store::Slot> StoreUpkeep::slots() const {
    std::vector<store::Slot> slots;
    for (const auto& home : stores_.volumes()) slots.push_back(home->slot());
    return slots;
}

Task<Result<void>> StoreUpkeep::count_objects(store::Slot slot) {
    HomeVolume* const home = stores_.find(slot);
    if (home == nullptr) co_return Result<void>{};
    const HomeVolume::Hold hold(*home);
    const auto counted =
        co_await home->volume().map().for_each(store::KeyKind::kObject, &home->objects());
    if (counted) home->objects().all_seen();
    co_return counted;
}

Task<Result<void>> StoreUpkeep::look_after(store::Slot slot) {
    HomeVolume* const home = stores_.find(slot);
    const bool is_there = home != nullptr && !home->is_leaving();
    if (!is_there || !home->volume().serving()) co_return Result<void>{};
    const HomeVolume::Hold hold(*home);
    const auto forgotten = co_await forget_replies(home);
    if (!forgotten) co_return forgotten;
    co_return co_await give_up_uploads(home);
}

// By their stamps, which only ever rise on a disk; the wall clock alone may go back.
Task<Result<void>> StoreUpkeep::forget_replies(HomeVolume* home) {
    const store::Slot slot = home->slot();
    std::int64_t up_to = 0;
    for (const Note& note : notes_) {
        const bool is_old = after(note.at, options_.replies_kept) <= now();
        if (note.slot == slot && is_old) up_to = note.stamp;
    }
    OldReplies old(*home, up_to);
    store::MapVisitor* const visitor = &old;
    const auto looked = co_await home->volume().map().for_each(store::KeyKind::kReply, visitor);
    if (!looked) co_return looked;
    home->raise_stamp(old.newest());
    std::erase_if(notes_,
                  [&](const Note& note) { return note.slot == slot && note.stamp < up_to; });
    notes_.push_back({.slot = slot, .at = now(), .stamp = home->stamp()});
    co_return Result<void>{};
}

Task<Result<void>> StoreUpkeep::give_up_uploads(HomeVolume* home) {
    home->upload_times().mark(home->newest_fid(), now(), options_.upload_timeout);
    AbandonedUploads abandoned(*home, stores_.parts().reactor, options_.upload_timeout);
    store::MapVisitor* const visitor = &abandoned;
    const auto looked = co_await home->volume().map().for_each(store::KeyKind::kUpload, visitor);
    co_return looked;
}

}  // namespace fopd::objects
