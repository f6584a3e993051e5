// How recalls begin and end at the homes of their objects.

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "library/staging_disks.h"
#include "objects/fids.h"

namespace fopd::library {

namespace {

constexpr std::size_t kBadEndsMax = 1024;
constexpr std::size_t kEndsToldMax = 65'536;

bool is_of_repack(const store::Recall& recall) {
    return recall.client == store::ClientId{} && recall.requester.empty() &&
           recall.priority <= kRepackPriority &&
           recall.pinned_until.unix_ns <= recall.asked.unix_ns;
}

Error no_object() {
    return {.code = Errc::kNotFound, .context = "there is no such object"};
}

}  // namespace

// The callers that wait for the end of a recall. Outlives the recall until the last of them has got
// the result.
struct StagingDisks::Waiters {
    explicit Waiters(core::Reactor& reactor) : queue(reactor) {}

    core::WaitQueue queue;
    std::list<store::ClientId> readers;  // Of all callers.
    std::optional<RecallEnd> end;
};

bool StagingDisks::has_recall(objects::HomeVolume& home, store::Fid fid) const {
    const auto recall = home.volume().map().find_recall(fid);
    return recall && recall->has_value() && (*recall)->ticket != 0;
}

// Reports a new or changed recall to the library.
void StagingDisks::tell_of(store::Fid fid) {
    news_.insert(fid);
    forget_end(fid);
    ring();
}

void StagingDisks::remember(store::Fid fid, const RecallEnd& end) {
    if (bad_ends_.insert_or_assign(fid, end).second) badly_ended_.push_back(fid);
    if (badly_ended_.size() <= kBadEndsMax) return;
    bad_ends_.erase(badly_ended_.front());
    badly_ended_.pop_front();
}

void StagingDisks::forget_end(store::Fid fid) {
    if (bad_ends_.erase(fid) > 0) std::erase(badly_ended_, fid);
}

// Locks the object's attributes: for the begin, the cancellation and the failure of a recall, so
// that none of these sees a recall that another one is ending.
Task<Result<void>> StagingDisks::lock_attributes(objects::HomeVolume* home, store::Fid fid,
                                                 objects::RangeLock* lock, core::WaitOptions wait) {
    const objects::LockRequest attributes{
        .fid = fid, .range = objects::kAttributes, .mode = objects::LockMode::kExclusive};
    co_return co_await home->locks().acquire(*lock, attributes, wait);
}

Task<Result<RecallAsked>> StagingDisks::recall(RecallWish wish, core::WaitOptions wait) {
    objects::HomeVolume* const home = stores_.find(wish.fid.slot());
    if (home == nullptr) co_return std::unexpected(no_object());
    const objects::HomeVolume::Hold hold(*home);
    // Of concurrent requests, only one makes the record.
    objects::RangeLock lock;
    const auto locked = co_await lock_attributes(home, wish.fid, &lock, wait);
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
    if (wish.withdraws) {
        const bool has_one = known->has_value() && (*known)->ticket != 0;
        const bool is_wanted = has_one ? !is_of_repack(**known) : returned_.contains(wish.fid);
        if (is_wanted) co_return RecallAsked::kWaiting;
        if (!has_one) co_return RecallAsked::kOnDisk;
        const auto ended = co_await home->volume().end_recall(wish.fid, wait);
        if (!ended) co_return std::unexpected(ended.error());
        returning_.cancel(wish.fid);
        finish(wish.fid, {.how = RecallEnd::How::kCancelled});
        co_return RecallAsked::kOnDisk;
    }
    // A client's wish for what a repack has asked for is recorded.
    const bool is_taken_over =
        known->has_value() && is_of_repack(**known) && wish.client != store::ClientId{};
    const bool is_there = is_released && known->has_value() && (*known)->ticket != 0 &&
                          (*known)->priority >= wish.priority && !is_taken_over;
    if (wish.unpins) {
        const auto unpinned = co_await unpin(home, wish.fid, wait);
        if (!unpinned) co_return std::unexpected(unpinned.error());
        co_return has_recall(*home, wish.fid) ? RecallAsked::kWaiting : RecallAsked::kOnDisk;
    }
    const bool changes = !is_there || wish.pin > Duration{0};
    if (changes && (is_released || wish.pin > Duration{0})) {
        const auto put = co_await put_recall(home, wish, wait);
        if (!put) co_return std::unexpected(put.error());
    }
    co_return is_released ? RecallAsked::kWaiting : RecallAsked::kOnDisk;
}

// REQUIRES: the object's attributes are locked.
Task<Result<void>> StagingDisks::unpin(objects::HomeVolume* home, store::Fid fid,
                                       core::WaitOptions wait) {
    const auto found = home->volume().map().find_recall(fid);
    if (!found) co_return std::unexpected(found.error());
    if (!found->has_value()) co_return Result<void>{};
    store::Recall record = **found;
    if (record.ticket == 0) {
        const auto ended = co_await home->volume().end_recall(fid, wait);
        if (!ended) co_return ended;
    } else {
        record.pinned_until = {};
        const auto put = co_await home->volume().put_recall(fid, std::move(record), wait);
        if (!put) co_return std::unexpected(put.error());
    }
    keep_room(fid.slot());
    room_may_have_come(fid.slot());
    co_return Result<void>{};
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
    const bool is_new = record.ticket == 0;
    if (is_released && !is_new && is_of_repack(record)) {
        record.requester = wish.requester;
        record.client = wish.client;
    }
    if (is_released && is_new) {
        record.ticket = (home->volume().newest().epoch << 32U) + ++tickets_made_;
        record.asked.unix_ns = wall_ns;
        record.requester = wish.requester;
        record.client = wish.client;
        // The record of a pin still has the priority of the recall before.
        record.priority = 0;
    }
    record.priority = std::max<std::int32_t>(record.priority, wish.priority);
    // The latest request counts, so that it can also make a pin shorter.
    if (wish.pin > Duration{0}) record.pinned_until.unix_ns = wall_ns + wish.pin.count();
    const auto put = co_await home->volume().put_recall(wish.fid, record, wait);
    if (!put) co_return std::unexpected(put.error());
    if (is_released) tell_of(wish.fid);
    co_return Result<void>{};
}

Task<Result<RecallEnd>> StagingDisks::wait_for_recall(Ticket ticket, store::ClientId reader,
                                                      core::WaitOptions wait) {
    objects::HomeVolume* const home = stores_.find(ticket.slot());
    if (home == nullptr || !has_recall(*home, ticket)) {
        const auto bad = bad_ends_.find(ticket);
        if (bad != bad_ends_.end()) co_return bad->second;
        // The recall has ended between two waits of the client, or before its first one.
        returned_.add_reader(ticket, reader);
        co_return RecallEnd{};
    }
    const std::shared_ptr<Waiters> waiters = waiters_for(ticket);
    const auto place = waiters->readers.insert(waiters->readers.end(), reader);
    Result<void> awaited;
    while (!waiters->end && awaited) {
        const auto woken = co_await waiters->queue.wait(wait);
        awaited = woken;
    }
    if (waiters->end) co_return *waiters->end;
    waiters->readers.erase(place);
    if (waiters->readers.empty()) waiters_.erase(ticket);
    co_return std::unexpected(awaited.error());
}

std::vector<store::ClientId> StagingDisks::readers_of(Ticket ticket) const {
    const auto found = waiters_.find(ticket);
    if (found == waiters_.end()) return {};
    return {found->second->readers.begin(), found->second->readers.end()};
}

std::shared_ptr<StagingDisks::Waiters> StagingDisks::waiters_for(Ticket ticket) {
    std::shared_ptr<Waiters>& waiters = waiters_[ticket];
    if (waiters == nullptr) waiters = std::make_shared<Waiters>(stores_.parts().reactor);
    return waiters;
}

void StagingDisks::finish(store::Fid fid, RecallEnd end) {
    news_.erase(fid);
    if (returning_.give_up_room(fid)) room_may_have_come(fid.slot());
    if (objects::HomeVolume* const home = stores_.find(fid.slot())) {
        home->uploads().recall_ended(fid);
    }
    // While the library is not open, it does not take the ends. It asks about each recall again
    // before it serves one.
    if (ended_.size() < kEndsToldMax) ended_.push_back(fid);
    // A client that has joined the recall may ask for its end later.
    if (end.how == RecallEnd::How::kFailed || end.how == RecallEnd::How::kCancelled) {
        remember(fid, end);
    } else {
        forget_end(fid);
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
    const Error no_recall{.code = Errc::kNotFound, .context = "there is no such recall"};
    objects::HomeVolume* const home = stores_.find(ticket.slot());
    if (home == nullptr) co_return std::unexpected(no_recall);
    const objects::HomeVolume::Hold hold(*home);
    objects::RangeLock lock;
    const auto locked = co_await lock_attributes(home, ticket, &lock, wait);
    if (!locked) co_return locked;
    if (!has_recall(*home, ticket)) co_return std::unexpected(no_recall);
    // A client that asks between the end of the record and finish() must not get kDone.
    const RecallEnd cancelled{.how = RecallEnd::How::kCancelled};
    remember(ticket, cancelled);
    const auto ended = co_await home->volume().end_recall(ticket, wait);
    if (!ended) {
        forget_end(ticket);
        co_return ended;
    }
    returning_.cancel(ticket);
    finish(ticket, cancelled);
    co_return Result<void>{};
}

// Ends the recall of an object that was emptied, so that it has no bytes on tape.
Task<void> StagingDisks::end_empty_recall(store::Fid fid) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) co_return;
    const objects::HomeVolume::Hold hold(*home);
    const core::WaitOptions wait{.cancel = &home->ending()};
    objects::RangeLock lock;
    const auto locked = co_await lock_attributes(home, fid, &lock, wait);
    if (!locked || !has_recall(*home, fid)) co_return;
    const auto found = home->volume().map().find(fid);
    if (!found || !found->has_value() || (*found)->is_released) co_return;
    const auto ended = co_await home->volume().end_recall(fid, wait);
    if (ended) finish(fid, {});
}

Task<Result<void>> StagingDisks::end_return(store::Fid fid) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) co_return std::unexpected(no_object());
    const objects::HomeVolume::Hold hold(*home);
    const auto ended = co_await returning_.end(fid);
    if (!ended) co_return std::unexpected(ended.error());
    const std::vector<store::ClientId> readers = readers_of(fid);
    finish(fid, {});
    if (!is_of_repack(*ended)) keep_returned(fid, readers);
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

Task<Result<bool>> StagingDisks::fail_recall(store::Fid fid, RecallEnd failure) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr) co_return std::unexpected(no_object());
    const objects::HomeVolume::Hold hold(*home);
    const core::WaitOptions wait{.cancel = &home->ending()};
    objects::RangeLock lock;
    const auto locked = co_await lock_attributes(home, fid, &lock, wait);
    if (!locked) co_return std::unexpected(locked.error());
    const bool was_wanted = has_recall(*home, fid);
    const auto before = home->volume().map().find(fid);
    const bool is_on_tape = before && before->has_value() && (*before)->is_released;
    // A client that asks between the end of the record and finish() must not get kDone.
    if (was_wanted && is_on_tape) remember(fid, failure);
    const auto ended = co_await home->volume().end_recall(fid, wait);
    // An object that was emptied or removed meanwhile does not need its copies.
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
                {"reason", std::string_view(failure.reason)}});
    finish(fid, std::move(failure));
    if (!ended) co_return std::unexpected(ended.error());
    co_return true;
}

}  // namespace fopd::library
