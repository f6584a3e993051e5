#include "library/staging_disks.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/ensure.h"
#include "core/remote.h"
#include "core/stable_sort.h"
#include "objects/fids.h"
#include "objects/range_locks.h"

namespace fopd::library {

namespace {

constexpr std::size_t kNewsMax = 256;
constexpr std::size_t kFailuresMax = 1024;

// Takes those back that are of the same object as the next one, at `at`, so that the copies of an
// object are recorded together. Returns how many; none if all are of one object.
std::size_t take_back_next(std::vector<store::Copy>& some, const std::vector<store::Copy>& copies,
                           std::size_t at) {
    if (at == copies.size() || some.empty()) return 0;
    std::size_t count = 0;
    while (count < some.size() && some[some.size() - 1 - count].fid == copies[at].fid) ++count;
    if (count == some.size()) return 0;
    some.resize(some.size() - count);
    return count;
}

Error no_object() {
    return {.code = Errc::kNotFound, .context = "there is no such object"};
}

}  // namespace

// Those who wait for the end of a recall. Outlives the recall until the last one has seen the end.
struct StagingDisks::Waiters {
    explicit Waiters(core::Reactor& reactor) : queue(reactor) {}

    core::WaitQueue queue;
    std::uint32_t count = 0;
    std::optional<RecallEnd> end;
};

// -- what is on the disks --

// Looks at all objects of a disk.
class StagingDisks::Scan final : public store::MapVisitor {
public:
    explicit Scan(StagingDisks& disks) : disks_(disks), since_(disks.now()) {}

    Result<void> object(store::Fid fid, const store::Object& object) override {
        if (disks_.tape_pool(object.pool) != nullptr) found_.push_back(fid);
        return {};
    }
    Task<Result<void>> between_turns() override {
        for (const store::Fid fid : std::exchange(found_, {})) {
            disks_.look(fid, since_);
            co_await disks_.stores_.parts().reactor.maybe_yield();
        }
        co_return Result<void>{};
    }

private:
    StagingDisks& disks_;
    const Instant since_;
    std::vector<store::Fid> found_;
};

StagingDisks::StagingDisks(objects::Stores& stores, const LibraryOptions& options)
    : stores_(stores),
      pools_(options.pools),
      outgoing_(stores, media_),
      returning_(stores, *this),
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
    if (home == nullptr || !is_staging(*home)) return;
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
        // One that is not needed any more ends.
        changed_.emplace(each.fid, now());
    }
    if (!changed_.empty()) begin_to_settle();
    co_return Result<void>{};
}

// Called in the turn of the change: it is looked at later, once for several changes.
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
        // Its steps end by themselves.
        [[maybe_unused]] const auto woken = co_await settled_.wait({});
    }
}

void StagingDisks::look(store::Fid fid, Instant since) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) return staged_.forget(fid);
    const auto found = home->volume().map().find(fid);
    // A disk that cannot be read says so elsewhere.
    if (!found) return;
    if (!found->has_value()) {
        staged_.forget(fid);
        finish(fid, {.how = RecallEnd::How::kGone});
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
        return;
    }
    auto copies = home->volume().copies_of(fid);
    if (!copies) return;
    const CountedCopies counted = counted_copies(media_, *std::move(copies));
    staged.group.moves = counted.moves;
    if (have_copies(counted.copies, copies_wanted(staged.group.pool), 0, staged.size_bytes)) {
        staged_.has_copy(staged);
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
    StagingNews news{.groups = staged_.groups(), .ended = std::exchange(ended_, {})};
    for (StagedObjects::Group& each : news.groups) each.is_urgent = is_urgent(each.key.pool);
    while (!news_.empty() && news.recalls.size() < kNewsMax) {
        const store::Fid fid = *news_.begin();
        news_.erase(news_.begin());
        auto note = note_of(fid);
        if (note) news.recalls.push_back(*std::move(note));
    }
    if (!news_.empty()) ring();
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
    const std::int64_t wall_ns = stores_.parts().clock.wall().unix_ns;
    const Duration age{std::max<std::int64_t>(0, wall_ns - (*recall)->asked.unix_ns)};
    auto copies = home->volume().copies_of(fid);
    return RecallNote{.fid = fid,
                      .ticket = (*recall)->ticket,
                      .priority = static_cast<std::uint8_t>((*recall)->priority),
                      .size_bytes = size_bytes,
                      .asked_at = now() - age,
                      .copies = copies ? *std::move(copies) : std::vector<store::Copy>()};
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
    std::vector<store::Slot> slots;
    for (const auto& home : stores_.volumes()) slots.push_back(home->slot());
    for (const store::Slot slot : slots) {
        objects::HomeVolume* const home = stores_.find(slot);
        if (home == nullptr || !is_staging(*home)) continue;
        const objects::HomeVolume::Hold hold(*home);
        const auto forgotten = co_await forget_outdated(home);
        if (!forgotten) co_return forgotten;
        for (const store::VsnText& vsn : others) {
            const auto looked = co_await look_at_copies(home, vsn);
            if (!looked) co_return looked;
        }
        keep_room(slot);
    }
    co_return Result<void>{};
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
    // The library has just written to them.
    for (const store::Copy& each : copies) {
        KnownMedium& medium = media_[each.cartridge.vsn];
        if (medium.generation >= each.cartridge.generation) continue;
        medium = {.generation = each.cartridge.generation, .is_good = true};
    }
    const std::size_t written = copies.size();
    auto complete = complete_ones(std::move(copies));
    if (!complete) co_return std::unexpected(complete.error());
    copies = *std::move(complete);
    recorded.dead = written - copies.size();
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
        if (home == nullptr) {
            recorded.dead += some.size();
            continue;
        }
        const objects::HomeVolume::Hold hold(*home);
        const core::WaitOptions wait{.cancel = &home->ending()};
        auto adding = home->volume().add_copies(std::move(some), wait);
        const auto added = co_await std::move(adding);
        if (!added) co_return std::unexpected(added.error());
        recorded.live += added->live;
        recorded.dead += added->dead;
    }
    for (const store::Copy& each : copies) {
        look(each.fid, now());
        keep_room(each.fid.slot());
        co_await stores_.parts().reactor.maybe_yield();
    }
    ring();
    co_return recorded;
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

// -- recalls --

bool StagingDisks::has_recall(objects::HomeVolume& home, store::Fid fid) const {
    const auto recall = home.volume().map().find_recall(fid);
    return recall && recall->has_value() && (*recall)->ticket != 0;
}

// The library has to learn of a recall, or of its change.
void StagingDisks::tell_of(store::Fid fid) {
    news_.insert(fid);
    if (failures_.erase(fid) > 0) std::erase(failed_, fid);
    ring();
}

Task<Result<RecallAsked>> StagingDisks::recall(RecallWish wish, core::WaitOptions wait) {
    objects::HomeVolume* const home = stores_.find(wish.fid.slot());
    if (home == nullptr) co_return std::unexpected(no_object());
    const objects::HomeVolume::Hold hold(*home);
    // Only one of those who ask at the same time makes the record.
    objects::RangeLock lock;
    const objects::LockRequest attributes{
        .fid = wish.fid, .range = objects::kAttributes, .mode = objects::LockMode::kExclusive};
    const auto locked = co_await home->locks().acquire(lock, attributes, wait);
    if (!locked) co_return std::unexpected(locked.error());
    const auto found = home->volume().map().find(wish.fid);
    if (!found) co_return std::unexpected(found.error());
    if (!found->has_value()) co_return std::unexpected(no_object());
    const bool is_released = (*found)->is_released;
    if (is_released && library_.bell == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "the node has no tape library"});
    }
    const auto known = home->volume().map().find_recall(wish.fid);
    if (!known) co_return std::unexpected(known.error());
    const bool is_there = is_released && known->has_value() && (*known)->ticket != 0 &&
                          (*known)->priority >= wish.priority;
    const bool changes = !is_there || wish.pin > Duration{0};
    if (changes && (is_released || wish.pin > Duration{0})) {
        const auto put = co_await put_recall(home, wish, wait);
        if (!put) co_return std::unexpected(put.error());
    }
    co_return is_released ? RecallAsked::kWaiting : RecallAsked::kOnDisk;
}

// REQUIRES: the object's attributes are locked.
Task<Result<void>> StagingDisks::put_recall(objects::HomeVolume* home, RecallWish wish,
                                            core::WaitOptions wait) {
    const auto object = home->volume().map().find(wish.fid);
    if (!object) co_return std::unexpected(object.error());
    if (!object->has_value()) co_return std::unexpected(no_object());
    const bool is_released = (*object)->is_released;
    const auto before = home->volume().map().find_recall(wish.fid);
    if (!before) co_return std::unexpected(before.error());
    store::Recall record = before->value_or(store::Recall{});
    const std::int64_t wall_ns = stores_.parts().clock.wall().unix_ns;
    if (!before->has_value()) record.asked.unix_ns = wall_ns;
    if (is_released && record.ticket == 0) {
        record.ticket = (home->volume().newest().epoch << 32U) + ++tickets_made_;
        record.asked.unix_ns = wall_ns;
        record.requester = wish.requester;
        record.client = wish.client;
    }
    record.priority = std::max<std::int32_t>(record.priority, wish.priority);
    const std::int64_t pinned_ns = wall_ns + wish.pin.count();
    if (wish.pin > Duration{0}) {
        record.pinned_until.unix_ns = std::max(record.pinned_until.unix_ns, pinned_ns);
    }
    const auto put = co_await home->volume().put_recall(wish.fid, record, wait);
    if (!put) co_return std::unexpected(put.error());
    if (is_released) tell_of(wish.fid);
    co_return Result<void>{};
}

Task<Result<RecallEnd>> StagingDisks::wait_for_recall(Ticket ticket, core::WaitOptions wait) {
    objects::HomeVolume* const home = stores_.find(ticket.slot());
    if (home == nullptr || !has_recall(*home, ticket)) {
        const auto failure = failures_.find(ticket);
        if (failure == failures_.end()) co_return RecallEnd{};
        co_return RecallEnd{.how = RecallEnd::How::kFailed, .reason = failure->second};
    }
    const std::shared_ptr<Waiters> waiters = waiters_for(ticket);
    ++waiters->count;
    Result<void> awaited;
    while (!waiters->end && awaited) {
        const auto woken = co_await waiters->queue.wait(wait);
        awaited = woken;
    }
    const bool is_last = --waiters->count == 0;
    if (waiters->end) co_return *waiters->end;
    if (is_last) waiters_.erase(ticket);
    co_return std::unexpected(awaited.error());
}

std::shared_ptr<StagingDisks::Waiters> StagingDisks::waiters_for(Ticket ticket) {
    std::shared_ptr<Waiters>& waiters = waiters_[ticket];
    if (waiters == nullptr) waiters = std::make_shared<Waiters>(stores_.parts().reactor);
    return waiters;
}

void StagingDisks::finish(store::Fid fid, RecallEnd end) {
    news_.erase(fid);
    ended_.push_back(fid);
    if (end.how == RecallEnd::How::kFailed) {
        if (failures_.insert_or_assign(fid, end.reason).second) failed_.push_back(fid);
        if (failed_.size() > kFailuresMax) {
            failures_.erase(failed_.front());
            failed_.pop_front();
        }
    }
    ring();
    const auto found = waiters_.find(fid);
    if (found == waiters_.end()) return;
    const std::shared_ptr<Waiters> waiters = found->second;
    waiters_.erase(found);
    waiters->end = std::move(end);
    waiters->queue.wake_all();
}

Task<Result<void>> StagingDisks::cancel_recall(Ticket ticket, core::WaitOptions wait) {
    objects::HomeVolume* const home = stores_.find(ticket.slot());
    if (home == nullptr || !has_recall(*home, ticket)) {
        co_return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "there is no such recall"});
    }
    const objects::HomeVolume::Hold hold(*home);
    const auto ended = co_await home->volume().end_recall(ticket, wait);
    if (!ended) co_return ended;
    returning_.cancel(ticket);
    finish(ticket, {.how = RecallEnd::How::kCancelled});
    co_return Result<void>{};
}

// The object has been emptied, so there is nothing to bring back.
Task<void> StagingDisks::end_empty_recall(store::Fid fid) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) co_return;
    const objects::HomeVolume::Hold hold(*home);
    const core::WaitOptions wait{.cancel = &home->ending()};
    const auto ended = co_await home->volume().end_recall(fid, wait);
    if (ended) finish(fid, {});
}

Task<Result<void>> StagingDisks::end_return(store::Fid fid) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) co_return std::unexpected(no_object());
    const objects::HomeVolume::Hold hold(*home);
    std::optional<store::Recall> kept;
    const auto recall = home->volume().map().find_recall(fid);
    if (!recall) co_return std::unexpected(recall.error());
    const std::int64_t wall_ns = stores_.parts().clock.wall().unix_ns;
    const bool is_pinned = recall->has_value() && (*recall)->pinned_until.unix_ns > wall_ns;
    if (is_pinned) {
        kept = **recall;
        kept->ticket = 0;
    }
    auto ending = returning_.end(fid, std::move(kept));
    const auto ended = co_await std::move(ending);
    if (!ended) co_return ended;
    finish(fid, {});
    keep_returned(fid);
    look(fid, now());
    keep_room(fid.slot());
    co_return Result<void>{};
}

std::string StagingDisks::name_of(store::Fid fid) const {
    const objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) return {};
    const auto object = home->volume().map().find(fid);
    if (!object || !object->has_value()) return {};
    return std::string((*object)->name);
}

Task<Result<bool>> StagingDisks::fail_recall(store::Fid fid, std::string reason) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) co_return std::unexpected(no_object());
    const objects::HomeVolume::Hold hold(*home);
    const core::WaitOptions wait{.cancel = &home->ending()};
    const bool was_wanted = has_recall(*home, fid);
    const auto ended = co_await home->volume().end_recall(fid, wait);
    // Copies are of no use to an object that was emptied or removed since they were looked for.
    const auto found = home->volume().map().find(fid);
    if (found && !found->has_value()) {
        finish(fid, {.how = RecallEnd::How::kGone});
        co_return false;
    }
    if (found && !(*found)->is_released) {
        finish(fid, {});
        co_return false;
    }
    if (!was_wanted) co_return false;
    const std::string object = objects::format_fid(fid);
    const std::string name = name_of(fid);
    core::emit(stores_.parts().events, core::Level::kError, "library.recall_failed",
               {{"object", std::string_view(object)},
                {"name", std::string_view(name)},
                {"reason", std::string_view(reason)}});
    finish(fid, {.how = RecallEnd::How::kFailed, .reason = std::move(reason)});
    if (!ended) co_return std::unexpected(ended.error());
    co_return true;
}

}  // namespace fopd::library
