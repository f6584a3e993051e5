#include "library/staging_disks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/remote.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

constexpr std::size_t kNewsMax = 256;

// Removes the last copies of `some` that belong to the same object as the next copy, copies[at], so
// that the copies of an object are recorded together. Returns how many; 0 if all belong to one
// object.
std::size_t take_back_next(std::vector<store::Copy>& some, const std::vector<store::Copy>& copies,
                           std::size_t at) {
    if (at == copies.size() || some.empty()) return 0;
    std::size_t count = 0;
    while (count < some.size() && some[some.size() - 1 - count].fid == copies[at].fid) ++count;
    if (count == some.size()) return 0;
    some.resize(some.size() - count);
    return count;
}

}  // namespace

// -- the objects on the disks --

// Looks at all objects of a disk.
class StagingDisks::Scan final : public store::MapVisitor {
public:
    explicit Scan(StagingDisks& disks) : disks_(disks) {}

    Result<void> object(store::Fid fid, const store::Object& object) override {
        if (disks_.tape_pool(object.pool) == nullptr) return {};
        found_.emplace_back(fid, disks_.instant_of(object.changed));
        return {};
    }
    Task<Result<void>> between_turns() override {
        for (const auto& [fid, since] : std::exchange(found_, {})) {
            disks_.look(fid, since);
            co_await disks_.stores_.parts().reactor.maybe_yield();
        }
        co_return Result<void>{};
    }

private:
    StagingDisks& disks_;
    std::vector<std::pair<store::Fid, Instant>> found_;
};

StagingDisks::StagingDisks(objects::Stores& stores, const LibraryOptions& options)
    : stores_(stores),
      pools_(options.pools),
      outgoing_(stores, media_),
      returning_(stores, *this),
      rescued_(stores),
      settled_(stores.parts().reactor) {
    for (const TapePoolOptions& each : pools_) {
        pool_ids_.push_back(objects::pool_id(each.name));
        staging_ids_.push_back(objects::pool_id(each.staging));
    }
}

StagingDisks::~StagingDisks() = default;

const TapePoolOptions* StagingDisks::tape_pool(objects::PoolId pool) const {
    const auto found = std::ranges::find(pool_ids_, pool);
    if (found == pool_ids_.end()) return nullptr;
    return &pools_[static_cast<std::size_t>(found - pool_ids_.begin())];
}

std::uint32_t StagingDisks::copies_wanted(objects::PoolId pool) const {
    const TapePoolOptions* const known = tape_pool(pool);
    return known == nullptr ? 1 : known->copies;
}

bool StagingDisks::is_staging(const objects::HomeVolume& home) const {
    return std::ranges::find(staging_ids_, home.pool()) != staging_ids_.end();
}

void StagingDisks::begin(const Library& library) {
    library_ = library;
    for (const auto& home : stores_.volumes()) look_at(home->slot());
}

void StagingDisks::look_at(store::Slot slot) {
    objects::HomeVolume* const home = stores_.find(slot);
    if (home == nullptr || !is_staging(*home) || stores_.duties().closed()) return;
    home->set_observer(this);
    stores_.parts().reactor.spawn(stores_.duties(), look_at_all(slot));
}

Task<void> StagingDisks::look_at_all(store::Slot slot) {
    objects::HomeVolume* const home = stores_.find(slot);
    if (home == nullptr) co_return;
    const objects::HomeVolume::Hold hold(*home);
    const auto forgotten = co_await forget_outdated(home);
    const auto taken = co_await take_recalls(home);
    Scan scan(*this);
    const auto seen = co_await home->volume().map().for_each(store::KeyKind::kObject, &scan);
    has_new_disk_ = true;
    ring();
    if (forgotten && taken && seen) co_return;
    const Error& error = !forgotten ? forgotten.error() : !taken ? taken.error() : seen.error();
    const std::string reason = describe(error);
    core::emit(stores_.parts().events, core::Level::kError, "library.scan_failed",
               {{"device", home->device_name()}, {"reason", std::string_view(reason)}});
}

Task<Result<void>> StagingDisks::take_recalls(objects::HomeVolume* home) {
    const auto recalls = co_await home->volume().recalls();
    if (!recalls) co_return std::unexpected(recalls.error());
    for (const store::RecallOf& each : *recalls) {
        if (each.recall.ticket == 0) continue;
        tell_of(each.fid);
        // settle() ends a recall that is not needed any more.
        changed_.emplace(each.fid, now());
    }
    if (!changed_.empty()) begin_to_settle();
    co_return Result<void>{};
}

// Called in the turn of the change. settle() looks at the object later, once for several changes.
void StagingDisks::object_changed(store::Fid fid) {
    changed_.emplace(fid, now());
    begin_to_settle();
}

void StagingDisks::begin_to_settle() {
    if (settling_ || stores_.duties().closed()) return;
    settling_ = true;
    stores_.parts().reactor.spawn(stores_.duties(), settle());
}

Task<void> StagingDisks::settle() {
    while (!changed_.empty()) {
        const auto [fid, since] = *changed_.begin();
        changed_.erase(changed_.begin());
        look(fid, since);
        keep_room(fid.slot());
        co_await stores_.parts().reactor.maybe_yield();
    }
    settling_ = false;
    settled_.wake_all();
    ring();
}

Task<void> StagingDisks::until_settled() {
    while (settling_) {
        // No deadline: settle() does not wait for anything.
        [[maybe_unused]] const auto woken = co_await settled_.wait({});
    }
}

// Times of before the start of the node, too.
Instant StagingDisks::instant_of(WallTime time) const {
    const std::int64_t wall_ns = stores_.parts().clock.wall().unix_ns;
    return now() - Duration{std::max<std::int64_t>(0, wall_ns - time.unix_ns)};
}

void StagingDisks::look(store::Fid fid, Instant since) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) return staged_.forget(fid);
    const auto found = home->volume().map().find(fid);
    // A disk that cannot be read is reported elsewhere.
    if (!found) return;
    if (!found->has_value()) {
        staged_.forget(fid);
        finish(fid, {.how = RecallEnd::How::kGone});
        room_may_have_come(fid.slot());
        return;
    }
    const store::Object& object = **found;
    const bool is_released = object.is_released;
    StagedObjects::Object staged{
        .fid = fid,
        .group = {.pool = object.pool, .collection = std::string(object.kept_with())},
        .size_bytes = object.size_bytes,
        .since = since};
    const bool may_begin = !stores_.duties().closed();
    if (may_begin && !is_released && !returning_.contains(fid) && has_recall(*home, fid)) {
        stores_.parts().reactor.spawn(stores_.duties(), end_empty_recall(fid));
    }
    if (is_released || staged.size_bytes == 0 || tape_pool(staged.group.pool) == nullptr) {
        staged_.forget(fid);
        if (is_released || staged.size_bytes == 0) room_may_have_come(fid.slot());
        return;
    }
    auto copies = home->volume().copies_of(fid);
    if (!copies) return;
    const std::uint32_t wanted = copies_wanted(staged.group.pool);
    // An object that would lack copies without the repack, too, is not only moved.
    const bool had_all = have_copies(*copies, wanted, 0, staged.size_bytes);
    const CountedCopies counted = counted_copies(media_, *std::move(copies));
    staged.group.moves = counted.moves && had_all;
    if (have_copies(counted.copies, wanted, 0, staged.size_bytes)) {
        staged_.has_copy(staged);
        room_may_have_come(fid.slot());
    } else {
        staged_.needs_copy(staged);
    }
}

Task<Result<std::vector<store::Fid>>> StagingDisks::not_on_tape(objects::PoolId pool) {
    co_await until_settled();
    co_return staged_.waiting_of(pool);
}

Task<Result<StagingDisks::NotOnTape>> StagingDisks::still_not_on_tape(
    std::vector<store::Fid> fids) {
    co_await until_settled();
    NotOnTape left{.fids = std::move(fids)};
    std::erase_if(left.fids, [this](store::Fid fid) { return !staged_.is_waiting(fid); });
    left.all_given_up =
        std::ranges::all_of(left.fids, [this](store::Fid fid) { return staged_.is_given_up(fid); });
    co_return left;
}

// -- to the library --

void StagingDisks::ring() {
    if (library_.bell == nullptr || stores_.duties().closed()) return;
    ring_again_ = true;
    if (rings_) return;
    rings_ = true;
    stores_.parts().reactor.spawn(stores_.duties(), ring_bell());
}

Task<void> StagingDisks::ring_bell() {
    while (std::exchange(ring_again_, false)) {
        auto job = [bell = library_.bell] { bell->ring(); };
        co_await core::run_on(stores_.parts().reactor, *library_.reactor, job);
    }
    rings_ = false;
}

StagingNews StagingDisks::take_news() {
    StagingNews news{.groups = staged_.groups(),
                     .uncopied = staged_.uncopied(),
                     .ended = std::exchange(ended_, {}),
                     .rooms = std::exchange(rooms_, {})};
    for (StagedObjects::Group& each : news.groups) each.is_urgent = is_urgent(each.key.pool);
    while (!news_.empty() && news.recalls.size() < kNewsMax) {
        const store::Fid fid = *news_.begin();
        news_.erase(news_.begin());
        auto note = note_of(fid);
        if (note) news.recalls.push_back(*std::move(note));
    }
    news.has_more = !news_.empty();
    news.has_new_disk = std::exchange(has_new_disk_, false);
    return news;
}

std::optional<RecallNote> StagingDisks::note_of(store::Fid fid) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) return std::nullopt;
    const auto recall = home->volume().map().find_recall(fid);
    if (!recall || !recall->has_value() || (*recall)->ticket == 0) return std::nullopt;
    const auto object = home->volume().map().find(fid);
    if (!object || !object->has_value()) return std::nullopt;
    const std::uint64_t size_bytes = (*object)->size_bytes;
    auto copies = home->volume().copies_of(fid);
    return RecallNote{.fid = fid,
                      .ticket = (*recall)->ticket,
                      .priority = static_cast<std::uint8_t>((*recall)->priority),
                      .size_bytes = size_bytes,
                      .asked_at = instant_of((*recall)->asked),
                      .asked_unix_ns = (*recall)->asked.unix_ns,
                      .copies = copies ? *std::move(copies) : std::vector<store::Copy>()};
}

std::uint64_t StagingDisks::unreadable_count() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(bad_ends_, [this](const auto& each) {
        if (each.second.how != RecallEnd::How::kFailed) return false;
        const objects::HomeVolume* const home = stores_.find(each.first.slot());
        if (home == nullptr || !home->volume().serving()) return false;
        const auto object = home->volume().map().find(each.first);
        return object && object->has_value() && (*object)->is_released;
    }));
}

Result<RecordedMedia> StagingDisks::recorded_media() {
    RecordedMedia media;
    for (const auto& home : stores_.volumes()) {
        if (!is_staging(*home) || !home->volume().serving()) continue;
        for (const auto& [vsn, use] : home->volume().map().copies().use()) {
            RecordedMedium& medium = media[vsn];
            if (use.live_copies == 0 || use.cartridge.generation <= medium.generation) continue;
            const auto copies = home->volume().copies_on(vsn, {}, 1);
            if (!copies) return std::unexpected(copies.error());
            if (copies->empty()) continue;
            const auto object = home->volume().map().find(copies->front().fid);
            if (!object) return std::unexpected(object.error());
            if (!object->has_value()) continue;
            medium = {.generation = use.cartridge.generation, .pool = (*object)->pool};
        }
    }
    std::erase_if(media, [](const auto& each) { return each.second.generation == 0; });
    return media;
}

std::uint32_t StagingDisks::newest_generation(store::VsnText vsn) const {
    std::uint32_t newest = 0;
    for (const auto& home : stores_.volumes()) {
        if (!is_staging(*home) || !home->volume().serving()) continue;
        const store::CartridgeUse use = home->volume().map().copies().use_of(vsn);
        newest = std::max(newest, use.cartridge.generation);
    }
    return newest;
}

Task<Result<void>> StagingDisks::set_media(KnownMedia media) {
    std::vector<store::VsnText> others;
    const auto is_repacked = [](const KnownMedia& all, const store::VsnText& vsn) {
        const auto found = all.find(vsn);
        return found != all.end() && found->second.is_repacked;
    };
    for (const auto& [vsn, medium] : media) {
        if (medium.is_repacked != is_repacked(media_, vsn)) others.push_back(vsn);
    }
    media_ = std::move(media);
    knows_media_ = true;
    // A disk that fails keeps the others from nothing.
    Result<void> result;
    std::vector<store::Slot> slots;
    for (const auto& home : stores_.volumes()) slots.push_back(home->slot());
    for (const store::Slot slot : slots) {
        objects::HomeVolume* const home = stores_.find(slot);
        if (home == nullptr || !is_staging(*home)) continue;
        const objects::HomeVolume::Hold hold(*home);
        const auto forgotten = co_await forget_outdated(home);
        if (!forgotten && result) result = forgotten;
        for (const store::VsnText& vsn : others) {
            const auto looked = co_await look_at_copies(home, vsn);
            if (!looked && result) result = looked;
        }
        keep_room(slot);
        // Objects may be on good cartridges now.
        room_may_have_come(slot);
    }
    co_return result;
}

Task<Result<void>> StagingDisks::forget_outdated(objects::HomeVolume* home) {
    std::vector<store::VsnText> outdated;
    for (const auto& [vsn, use] : home->volume().map().copies().use()) {
        const auto known = media_.find(vsn);
        const bool is_outdated =
            known != media_.end() && use.cartridge.generation < known->second.generation;
        if (is_outdated && use.live_copies > 0) outdated.push_back(vsn);
    }
    for (const store::VsnText& vsn : outdated) {
        core::emit(stores_.parts().events, core::Level::kWarn, "library.copies_outdated",
                   {{"device", home->device_name()}, {"medium", store::text_of(vsn)}});
        const core::WaitOptions wait{.cancel = &home->ending()};
        const auto forgotten =
            co_await home->volume().forget_cartridge(vsn, store::Volume::Loss::kAccepted, wait);
        if (!forgotten) co_return forgotten;
    }
    co_return Result<void>{};
}

Task<Result<StagingDisks::Recorded>> StagingDisks::record(std::vector<store::Copy> copies) {
    Recorded recorded;
    // These cartridges were just written, so they are good, even if set_media() lacks them yet.
    for (const store::Copy& each : copies) {
        KnownMedium& medium = media_[each.cartridge.vsn];
        if (medium.generation >= each.cartridge.generation) continue;
        medium = {.generation = each.cartridge.generation, .is_good = true};
    }
    const std::size_t written = copies.size();
    copies = complete_ones(std::move(copies));
    recorded.dead = written - copies.size();
    std::optional<store::Slot> failed;
    for (std::size_t at = 0; at < copies.size();) {
        const store::Slot slot = copies[at].fid.slot();
        objects::HomeVolume* const home = stores_.find(slot);
        std::vector<store::Copy> some;
        for (; at < copies.size() && copies[at].fid.slot() == slot &&
               some.size() < store::Volume::kCopiesAtOnceMax;
             ++at) {
            some.push_back(copies[at]);
        }
        at -= take_back_next(some, copies, at);
        const std::size_t count = some.size();
        if (home == nullptr) {
            recorded.dead += count;
            continue;
        }
        if (slot == failed) {
            recorded.unrecorded += count;
            continue;
        }
        const objects::HomeVolume::Hold hold(*home);
        const core::WaitOptions wait{.cancel = &home->ending()};
        auto adding = home->volume().add_copies(std::move(some), wait);
        const auto added = co_await std::move(adding);
        if (added) {
            recorded.live += added->live;
            recorded.dead += added->dead;
            continue;
        }
        // Other disks still record their copies.
        if (recorded.unrecorded == 0) recorded.reason = added.error();
        recorded.unrecorded += count;
        failed = slot;
    }
    for (const store::Copy& each : copies) {
        look(each.fid, now());
        keep_room(each.fid.slot());
        co_await stores_.parts().reactor.maybe_yield();
    }
    ring();
    co_return recorded;
}

Task<Result<void>> StagingDisks::put_back(std::vector<store::Fid> fids) {
    for (const store::Fid fid : fids) {
        staged_.put_back(fid);
        // The object may have its copies, if look() failed when they were recorded.
        if (staged_.is_waiting(fid) && !staged_.is_given_up(fid)) look(fid, now());
        co_await stores_.parts().reactor.maybe_yield();
    }
    co_return Result<void>{};
}

Task<Result<void>> StagingDisks::forget_cartridge(store::VsnText vsn, store::Volume::Loss loss) {
    std::vector<store::Slot> slots;
    for (const auto& home : stores_.volumes()) slots.push_back(home->slot());
    for (const store::Slot slot : slots) {
        objects::HomeVolume* const home = stores_.find(slot);
        if (home == nullptr) continue;
        const objects::HomeVolume::Hold hold(*home);
        const core::WaitOptions wait{.cancel = &home->ending()};
        const auto forgotten = co_await home->volume().forget_cartridge(vsn, loss, wait);
        if (!forgotten) co_return forgotten;
        co_await look_at_all(slot);
    }
    co_return Result<void>{};
}

}  // namespace fopd::library
