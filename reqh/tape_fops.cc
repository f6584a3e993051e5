#include "reqh/tape_fops.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/remote.h"
#include "core/remote_task.h"
#include "core/stable_sort.h"
#include "core/wait_queue.h"
#include "fop/listing.h"
#include "library/library.h"
#include "library/staging.h"
#include "objects/fids.h"
#include "reqh/at_library.h"
#include "reqh/caller.h"
#include "reqh/every_locality.h"
#include "reqh/operation.h"

namespace fopd::reqh {

namespace {

// The staging of a locality; null: the node has no library.
library::Staging* staging_at(const Operation& operation, std::uint32_t locality) {
    const library::LibraryDoor* const door = door_of(operation);
    if (door == nullptr || locality >= door->stagings.size()) return nullptr;
    return door->stagings[locality];
}

library::Staging* staging_here(const Operation& operation) {
    return staging_at(operation, operation.stores().parts().locality);
}

// A request of the caller for a recall. It has the caller's name only if that was proved.
library::RecallWish wish_of(const Operation& operation, store::Fid fid) {
    const fabric::Caller& caller = operation.caller();
    library::RecallWish wish{.fid = fid, .client = {caller.owner}};
    if (caller.kind == fop::AuthKind::kPrincipal) wish.requester = caller.principal;
    return wish;
}

}  // namespace

Task<fop::Reply> ask_for_recall(Operation* operation, store::Fid fid) {
    library::Staging* const staging = staging_here(*operation);
    if (staging == nullptr) {
        co_return operation->refuse(
            {.status = fop::Status::kMediumMissing,
             .words = "its bytes are on tape, and the node has no library"});
    }
    library::RecallWish wish = wish_of(*operation, fid);
    const auto asked = co_await staging->recall(std::move(wish), operation->wait());
    if (!asked) co_return operation->refuse(untraced(asked.error()));
    co_return operation->refuse(
        {.status = fop::Status::kStaging, .words = fop::status_row(fop::Status::kStaging).summary});
}

namespace {

Task<std::string> ask_why_recalls_wait(library::LibraryService* service) {
    co_return service->why_recalls_wait();
}

// The reason why no recall is served now; empty: recalls are served, or it is not known. It stays
// valid as long as the operation.
Task<std::string_view> why_recalls_wait(Operation* operation) {
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr) co_return std::string_view();
    auto job = [](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return ask_why_recalls_wait(&service);
    };
    auto asked = co_await run_at_library<std::string>(operation, door, &job);
    if (!asked) co_return std::string_view();
    operation->work().text = std::move(*asked);
    co_return operation->work().text;
}

}  // namespace

void note_read(Operation* operation, store::Fid fid, std::uint64_t bytes) {
    library::Staging* const staging = staging_here(*operation);
    if (staging != nullptr) staging->note_read(fid, {operation->caller().owner}, bytes);
}

void ask_for_room(Operation* operation, store::Slot slot, std::uint64_t free_blocks) {
    library::Staging* const staging = staging_here(*operation);
    if (staging != nullptr) staging->want_room(slot, free_blocks);
}

// -- one object --

Task<fop::Reply> run_stage(Operation* operation) {
    const auto& stage = operation->body<fop::Stage>();
    const store::Fid fid = objects::store_fid(stage.fid);
    const auto found = co_await operation->look_at(fid, objects::Access::kRead);
    if (!found) co_return operation->refuse(found.error());
    // A pin takes space from others.
    const AccessCheck::Wish to_pin{
        .access = objects::Access::kWrite, .lent = fop::kWrite, .words = "pin it to the disks"};
    const bool pins = stage.pin_s > 0 || stage.unpin;
    const auto may_pin =
        pins ? operation->access().check_mode(fid, operation->object(), to_pin) : Granted<>{};
    if (!may_pin) co_return operation->refuse(may_pin.error());
    const Matter matter{.pool = operation->object().pool, .object = fid};
    if (stage.priority > fop::kRecallPriorityDefault &&
        !operation->access().may_administer(matter)) {
        co_return operation->refuse(
            {.status = fop::Status::kDenied,
             .words = "only an administrator recalls with a higher priority than reads have"});
    }
    operation->enter(Phase::kExecute);
    library::Staging* const staging = staging_here(*operation);
    if (staging == nullptr) co_return operation->refuse(kNoLibrary);
    library::RecallWish wish = wish_of(*operation, fid);
    wish.priority = stage.priority;
    wish.pin = std::chrono::seconds(static_cast<std::int64_t>(stage.pin_s));
    wish.unpins = stage.unpin;
    const auto asked = co_await staging->recall(std::move(wish), operation->wait());
    if (!asked) co_return operation->refuse(untraced(asked.error()));
    if (*asked != library::RecallAsked::kWaiting) {
        co_return fop::Reply{.body = fop::StageReply{.waits = false}};
    }
    const std::string_view reason = co_await why_recalls_wait(operation);
    co_return fop::Reply{.words = reason, .body = fop::StageReply{.waits = true}};
}

Task<fop::Reply> run_release(Operation* operation) {
    const store::Fid fid = objects::store_fid(operation->body<fop::Release>().fid);
    const auto found = co_await operation->look_at(fid, objects::Access::kWrite);
    if (!found) co_return operation->refuse(found.error());
    const auto serving = operation->check_serving();
    if (!serving) co_return operation->refuse(serving.error());
    operation->enter(Phase::kExecute);
    library::Staging* const staging = staging_here(*operation);
    if (staging == nullptr) co_return operation->refuse(kNoLibrary);
    const auto released = co_await staging->release(fid, operation->wait());
    if (!released && released.error().code == Errc::kInvalid) {
        // Its pool is not a tape pool, and no later try helps.
        co_return operation->refuse(
            {.status = fop::Status::kWrongPool, .words = released.error().context});
    }
    if (!released) co_return operation->refuse(untraced(released.error()));
    co_return fop::Reply{.body = fop::ReleaseReply{}};
}

namespace {

// A recall may be cancelled by the principal that has asked for it first, by the owner of the
// object and by an administrator.
Granted<> may_cancel(Operation& operation, store::Fid fid) {
    const auto recall = operation.volume().map().find_recall(fid);
    if (!recall) return refused(recall.error());
    const fabric::Caller& caller = operation.caller();
    const bool is_his = recall->has_value() && caller.kind == fop::AuthKind::kPrincipal &&
                        !caller.principal.empty() && (*recall)->requester == caller.principal;
    if (is_his) return {};
    const AccessCheck::Wish wish{.access = objects::Access::kOwn,
                                 .lent = fop::kAdmin,
                                 .words = "cancel a recall that others have asked for"};
    return operation.access().check_mode(fid, operation.object(), wish);
}

}  // namespace

Task<fop::Reply> run_recall_cancel(Operation* operation) {
    const store::Fid fid = objects::store_fid(operation->body<fop::RecallCancel>().fid);
    const auto found = co_await operation->look_at(fid, objects::Access::kRead);
    if (!found) co_return operation->refuse(found.error());
    const auto allowed = may_cancel(*operation, fid);
    if (!allowed) co_return operation->refuse(allowed.error());
    operation->enter(Phase::kExecute);
    library::Staging* const staging = staging_here(*operation);
    if (staging == nullptr) co_return operation->refuse(kNoLibrary);
    const auto cancelled = co_await staging->cancel_recall(fid, operation->wait());
    if (!cancelled) co_return operation->refuse(untraced(cancelled.error()));
    co_return fop::Reply{.body = fop::RecallCancelReply{}};
}

// -- waiting for recalls --

namespace {

Task<Granted<>> look(Operation* operation, store::Fid fid) {
    const auto homed = operation->find_home(fid.slot());
    if (!homed) co_return homed;
    co_return co_await operation->look_at(fid, objects::Access::kRead);
}

// Waits for recalls of objects, each at its home, until one of them has ended.
class RecallWaiting : core::CancelHook {
public:
    RecallWaiting(Operation& operation, const fop::RecallWait& asked)
        : CancelHook([](CancelHook& hook) { static_cast<RecallWaiting&>(hook).enough_.cancel(); }),
          operation_(operation),
          asked_(asked),
          deadline_(operation.deadline()) {
        if (asked.patience_ms == 0) return;
        const auto patience = std::min<std::uint64_t>(asked.patience_ms, kPatienceMaxMs);
        const Instant patient_until =
            after(operation.reactor().now(), std::chrono::milliseconds(patience));
        deadline_ = std::min(deadline_, patient_until);
    }

    Task<Granted<>> run();
    std::span<const std::uint8_t> states() const { return states_; }
    // The reason of the first recall that failed.
    std::string& reason() { return reason_; }
    bool is_damaged() const { return is_damaged_; }
    bool all_wait() const { return std::ranges::all_of(states_, &is_waiting); }

private:
    static constexpr auto kWaiting = static_cast<std::uint8_t>(fop::RecallState::kWaiting);
    static constexpr std::uint64_t kPatienceMaxMs = 24UL * 3600 * 1000;
    static bool is_waiting(std::uint8_t state) { return state == kWaiting; }

    Task<Granted<>> look_at(std::size_t index);
    Task<void> wait_for(std::size_t index);
    void ended(std::size_t index, fop::RecallState state) {
        states_[index] = static_cast<std::uint8_t>(state);
        enough_.cancel();
    }
    void take(std::size_t index, const Result<library::RecallEnd>& end);

    Operation& operation_;
    const fop::RecallWait& asked_;
    std::vector<std::uint32_t> localities_;
    std::vector<std::uint8_t> states_;
    std::string reason_;
    bool is_damaged_ = false;
    std::optional<Refusal> fault_;
    core::CancelSource enough_;
    Instant deadline_;  // When the client is answered in any case.
};

Task<Granted<>> RecallWaiting::run() {
    const std::size_t count = asked_.fids.size();
    states_.assign(count, kWaiting);
    localities_.assign(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
        const auto looked = co_await look_at(i);
        if (!looked) co_return looked;
    }
    operation_.enter(Phase::kExecute);
    const auto wanted = operation_.check_wanted();
    if (!wanted) co_return wanted;
    if (enough_.cancelled()) co_return Granted<>{};
    operation_.site().cancel->add(*this);
    const Waiting waiting = operation_.waits_for({.what = WaitsFor::kTape});
    core::Gate waits;
    for (std::size_t i = 0; i < count; ++i) operation_.reactor().spawn(waits, wait_for(i));
    // Each wait has the fop's deadline, and ends when another one has ended.
    co_await waits.close(operation_.reactor());
    CancelHook::unlink();
    if (all_wait() && fault_) co_return refused(*fault_);
    co_return Granted<>{};
}

// Checks that the caller may know of the recall of an object. A removed object has none.
Task<Granted<>> RecallWaiting::look_at(std::size_t index) {
    const store::Fid fid = objects::store_fid(asked_.fids[index]);
    const auto locality = operation_.layout().locality_of(fid.slot());
    Granted<> looked;
    if (locality) {
        localities_[index] = *locality;
        Operation* const operation = &operation_;
        const auto job = [operation, fid] { return look(operation, fid); };
        looked = co_await operation_.run_at<void>(*locality, job);
    } else {
        looked = refused(locality.error());
    }
    if (looked) co_return Granted<>{};
    if (looked.error().status != fop::Status::kNotFound) co_return looked;
    ended(index, fop::RecallState::kGone);
    co_return Granted<>{};
}

Task<void> RecallWaiting::wait_for(std::size_t index) {
    library::Staging* const staging = staging_at(operation_, localities_[index]);
    const store::Fid fid = objects::store_fid(asked_.fids[index]);
    core::Reactor& here = operation_.reactor();
    objects::Stores& home = operation_.stores().at(localities_[index]);
    core::CancelSource cancel;
    core::CancelThere forwarded(enough_, here, home.parts().reactor, cancel);
    const core::WaitOptions wait{.deadline = deadline_, .cancel = &cancel};
    const store::ClientId reader{operation_.caller().owner};
    auto job = [staging, fid, reader, wait] { return staging->wait_for_recall(fid, reader, wait); };
    const auto end = co_await core::run_task_on<Result<library::RecallEnd>>(
        here, home.parts().reactor, home.duties(), job);
    co_await forwarded.end();
    if (end) {
        take(index, *end);
    } else {
        fault_ = kServerStops;
        enough_.cancel();
    }
}

void RecallWaiting::take(std::size_t index, const Result<library::RecallEnd>& end) {
    using How = library::RecallEnd::How;
    if (!end) {
        // The client wanted to be answered before the fop's own deadline.
        const bool is_early = deadline_ < operation_.deadline();
        if (is_early && end.error().code == Errc::kTimedOut) return enough_.cancel();
        // A wait that ends because another one has ended is no fault.
        if (!fault_ || end.error().code != Errc::kCancelled) fault_ = untraced(end.error());
        return enough_.cancel();
    }
    switch (end->how) {
        case How::kDone: return ended(index, fop::RecallState::kDone);
        case How::kFailed:
            if (reason_.empty()) {
                reason_ = end->reason;
                is_damaged_ = end->is_damaged;
            }
            return ended(index, fop::RecallState::kFailed);
        case How::kCancelled: return ended(index, fop::RecallState::kCancelled);
        case How::kGone: return ended(index, fop::RecallState::kGone);
    }
}

}  // namespace

namespace {

struct RecallProgress {
    std::optional<library::RecallRow> row;
    std::string why_it_waits;
    Instant now{};  // At the library's locality.
};

Task<RecallProgress> find_progress(library::LibraryService* service, core::Reactor* reactor,
                                   store::Fid fid) {
    co_return RecallProgress{.row = service->find_recall(fid),
                             .why_it_waits = service->why_recalls_wait(),
                             .now = reactor->now()};
}

// Place and expected end of the first recall, if the library knows it, and in the operation's text
// the reason why no recall is served.
Task<void> note_progress(Operation* operation, fop::RecallWaitReply* reply) {
    const library::LibraryDoor* const door = door_of(*operation);
    const store::Fid fid = objects::store_fid(operation->body<fop::RecallWait>().fids[0]);
    auto job = [door, fid](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return find_progress(&service, door->reactor, fid);
    };
    auto found = co_await run_at_library<RecallProgress>(operation, door, &job);
    if (!found) co_return;
    operation->work().text = std::move(found->why_it_waits);
    if (!found->row) co_return;
    reply->place = found->row->place;
    if (found->row->expected_at) {
        reply->expected_ms = milliseconds(*found->row->expected_at - found->now);
    }
}

}  // namespace

// The waits do not keep the fom's place: see RequestHandler::park().
Task<fop::Reply> run_recall_wait(Operation* operation) {
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr) co_return operation->refuse(kNoLibrary);
    const auto open = co_await check_open(operation, door, Opening::kWaits);
    if (!open) co_return operation->refuse(open.error());
    RecallWaiting waiting(*operation, operation->body<fop::RecallWait>());
    const auto waited = co_await waiting.run();
    if (!waited) co_return operation->refuse(waited.error());
    FopWork& work = operation->work();
    work.states.assign(waiting.states().begin(), waiting.states().end());
    work.text = std::move(waiting.reason());
    fop::RecallWaitReply reply{.states = work.states};
    reply.is_damaged = waiting.is_damaged();
    if (waiting.all_wait()) co_await note_progress(operation, &reply);
    co_return fop::Reply{.words = work.text, .body = reply};
}

// -- the library --

namespace {

// More recalls than fit into a reply, since recalls of unreadable objects are left out of it.
constexpr std::size_t kRecallsLookedAt = 4096;

struct ListedRecall {
    library::RecallRow row;
    bool is_shown = false;
    std::string name = {};
    std::string requester = {};
};

struct RecallList {
    std::vector<ListedRecall> recalls;
    Instant now{};  // At the library's locality.
    library::PendingRecalls pending = {};
    std::string why_they_wait = {};
};

Task<RecallList> list_recalls(library::LibraryService* service, core::Reactor* reactor) {
    RecallList list{.recalls = {}, .now = reactor->now(), .pending = service->pending_recalls()};
    for (library::RecallRow& row : service->recalls(kRecallsLookedAt)) {
        list.recalls.push_back({.row = std::move(row)});
    }
    if (list.pending.count > 0) list.why_they_wait = service->why_recalls_wait();
    co_return list;
}

// Notes the names of the objects of a locality that the caller may read, and the principals that
// have asked for their recalls.
void look_at_names(objects::Stores& stores, const AccessCheck& access, RecallList& list) {
    for (ListedRecall& each : list.recalls) {
        const store::Fid fid = each.row.ticket;
        objects::HomeVolume* const home = stores.find(fid.slot());
        if (home == nullptr) continue;
        const auto object = home->volume().map().find(fid);
        if (!object || !object->has_value()) continue;
        if (!access.may_read(fid, **object)) continue;
        each.is_shown = true;
        each.name = (*object)->name;
        auto recall = home->volume().map().find_recall(fid);
        if (recall && recall->has_value()) each.requester = std::move((*recall)->requester);
    }
}

struct FormatList {
    std::vector<library::FormatRow> formats;
    Instant now{};  // At the library's locality.
};

Task<FormatList> list_formats(library::LibraryService* service, core::Reactor* reactor) {
    FormatList list{.formats = service->formats(), .now = reactor->now()};
    co_return list;
}

Task<fop::Reply> show_formats(Operation* operation, const library::LibraryDoor* door) {
    auto job = [door](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return list_formats(&service, door->reactor);
    };
    const auto listed = co_await run_at_library<FormatList>(operation, door, &job);
    if (!listed) co_return operation->refuse(listed.error());
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    for (const library::FormatRow& each : listed->formats) {
        using State = fop::FormatEntry::State;
        const bool fits =
            writer.add(fop::FormatEntry{.asked_ms = milliseconds(listed->now - each.asked_at),
                                        .state = each.has_begun ? State::kRunning : State::kWaiting,
                                        .cartridge = each.barcode,
                                        .pool = each.pool});
        if (!fits) break;
    }
    co_return fop::Reply{
        .payload = writer.written(),
        .body = fop::RecallsReply{.total = listed->formats.size(), .formats = true}};
}

}  // namespace

Task<fop::Reply> run_recalls(Operation* operation) {
    operation->enter(Phase::kExecute);
    const bool wants_formats = operation->body<fop::Recalls>().formats;
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr) {
        co_return fop::Reply{.body = fop::RecallsReply{.formats = wants_formats}};
    }
    // The library learns of the recalls when it is open; until then the list would be empty.
    const auto open = co_await check_open(operation, door, Opening::kRefused);
    if (!open) co_return operation->refuse(open.error());
    if (wants_formats) co_return co_await show_formats(operation, door);
    auto job = [door](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return list_recalls(&service, door->reactor);
    };
    auto listed = co_await run_at_library<RecallList>(operation, door, &job);
    if (!listed) co_return operation->refuse(listed.error());
    RecallList& list = *listed;
    auto look = [operation, &list](objects::Stores& there) {
        look_at_names(there, operation->access(), list);
    };
    co_await at_every_locality(operation, &look);
    const bool shows_all = operation->access().may_administer({});
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    for (const ListedRecall& each : list.recalls) {
        const library::RecallRow& row = each.row;
        if (!each.is_shown && !shows_all) continue;
        const bool reads = row.state == library::RecallRow::State::kReading;
        const fop::RecallEntry entry{
            .fid = objects::fop_fid(row.ticket),
            .size_bytes = row.size_bytes,
            .place = row.place,
            .asked_ms = milliseconds(list.now - row.asked_at),
            .expected_ms = row.expected_at ? milliseconds(*row.expected_at - list.now)
                                           : fop::RecallEntry::kUnknown,
            .state = reads ? fop::RecallEntry::State::kReading : fop::RecallEntry::State::kWaiting,
            .priority = row.priority,
            .cartridge = row.cartridge,
            .name = each.name,
            .requester = each.requester};
        if (!writer.add(entry)) break;
    }
    operation->work().text = std::move(list.why_they_wait);
    fop::RecallsReply reply{.total = list.pending.count};
    if (const auto oldest = list.pending.oldest_at) {
        reply.oldest_ms = milliseconds(list.now - *oldest);
    }
    co_return fop::Reply{
        .words = operation->work().text, .payload = writer.written(), .body = std::move(reply)};
}

Task<fop::Reply> run_sync_tape(Operation* operation) {
    operation->enter(Phase::kExecute);
    const auto pool = operation->layout().find_pool();
    if (!pool) co_return operation->refuse(pool.error());
    const objects::LayoutPool& found = *operation->stores().layout().find_pool(*pool);
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr || !found.is_on_tape()) {
        co_return operation->refuse(
            {.status = fop::Status::kNotFound, .words = "the pool has no tape library"});
    }
    const auto open = co_await check_open(operation, door, Opening::kWaits);
    if (!open) co_return operation->refuse(open.error());
    const std::string name = found.name;
    auto job = [&name](library::LibraryService& service, core::WaitOptions wait) {
        return service.sync(name, wait);
    };
    const auto synced = co_await run_at_library<Result<void>>(operation, door, &job);
    if (!synced) co_return operation->refuse(synced.error());
    if (!*synced && synced->error().code == Errc::kTimedOut) {
        co_return operation->refuse(
            {.status = fop::Status::kTimedOut,
             .words = "not all of its objects are on tape yet; they are still being written"});
    }
    if (!*synced) co_return operation->refuse(untraced(synced->error()));
    co_return fop::Reply{.body = fop::SyncTapeReply{}};
}

}  // namespace fopd::reqh
