#include "objects/replaced_objects.h"

#include <string_view>
#include <utility>

#include "core/events.h"
#include "core/remote_task.h"
#include "core/utf8.h"
#include "fop/name.h"
#include "objects/access.h"
#include "objects/fids.h"
#include "objects/home_volume.h"
#include "objects/object_change.h"
#include "objects/range_locks.h"

namespace fopd::objects {

namespace {

constexpr Duration kRetryAfter = 1s;

using LateOwner = ReplacedObjects::LateOwner;

// An object whose name was given to another while its disk was missing.
struct LateObject {
    const HomeVolume& home;
    store::Fid fid;
    std::string_view name;
};

void report_late(const Stores& stores, std::string_view event, const LateObject& object,
                 const LateOwner& late) {
    const std::string replaced = format_fid(object.fid);
    const std::string by = format_fid(late.fid);
    core::emit(stores.parts().events, core::Level::kWarn, event,
               {{"device", object.home.device_name()},
                {"slot", std::uint64_t{object.home.slot()}},
                {"object", std::string_view(replaced)},
                {"name", object.name},
                {"by", std::string_view(by)}});
}

bool could_replace(const LateOwner& late, const store::Object& object) {
    return may({.principal = late.principal, .user = late.principal}, object, Access::kWrite);
}

// Unique, because it contains the id.
std::string own_name(std::string_view name, store::Fid fid) {
    const std::string end = "." + format_fid(fid);
    std::string own(name.substr(0, fop::kObjectNameBytesMax - end.size()));
    while (!core::is_utf8(own)) own.pop_back();
    return own + end;
}

// -- at the object's home --

constexpr Error kNoDisk{.code = Errc::kNotFound, .context = "the disk"};

// An object that has lost its name, reserved for a change.
struct Loser {
    explicit Loser(HomeVolume& volume) : home(volume), hold(volume), change(volume) {}

    HomeVolume& home;
    const HomeVolume::Hold hold;
    RangeLock lock;
    ObjectChange change;
};

struct RecordRoom {
    std::size_t bytes = 0;
    store::Purpose purpose = store::Purpose::kAdding;
};

Task<Result<store::Reservation>> hold_loser(Loser* loser, const store::NameClaim* claim,
                                            RecordRoom wanted, core::WaitOptions wait) {
    const LockRequest whole{.fid = claim->fid, .range = kWholeObject, .mode = LockMode::kExclusive};
    const auto locked = co_await loser->home.locks().acquire(loser->lock, whole, wait);
    if (!locked) co_return std::unexpected(locked.error());
    auto room = loser->change.reserve(wanted.bytes, wait, wanted.purpose);
    co_return co_await std::move(room);
}

// None if the object was removed, or has another name by now.
Result<std::optional<store::Object>> find_loser(const Loser& loser, const store::NameClaim& claim) {
    const auto object = loser.home.volume().map().find(claim.fid);
    if (!object) return std::unexpected(object.error());
    const bool is_it = object->has_value() && (*object)->name == claim.name &&
                       (*object)->name_version == claim.version;
    if (!is_it) return std::nullopt;
    return **object;
}

// False: it stays, because the new owner of its name had no right to replace it.
Task<Result<bool>> remove_at_home(Stores* stores, const store::NameClaim* claim,
                                  const LateOwner* late) {
    HomeVolume* const home = stores->find(claim->fid.slot());
    if (home == nullptr) co_return std::unexpected(kNoDisk);
    const core::WaitOptions wait{.cancel = &stores->stopping()};
    Loser loser(*home);
    const RecordRoom wanted{.bytes = store::kRemoveRecordBytes,
                            .purpose = store::Purpose::kFreeing};
    auto room = co_await hold_loser(&loser, claim, wanted, wait);
    if (!room) co_return std::unexpected(room.error());
    const auto blocks = co_await home->volume().count_owned(claim->fid, wait);
    if (!blocks) co_return std::unexpected(blocks.error());
    const auto object = find_loser(loser, *claim);
    if (!object) co_return std::unexpected(object.error());
    if (!*object) co_return true;
    if (late != nullptr && !could_replace(*late, **object)) co_return false;
    loser.change.will_free(owner_of(**object), {.blocks = *blocks, .objects = 1});
    loser.change.remove(claim->fid);
    loser.change.will_go(claim->fid, (*object)->pool);
    const auto finished = co_await loser.change.commit(std::move(*room));
    if (!finished) co_return std::unexpected(finished.error());
    if (late != nullptr) {
        const LateObject gone{.home = *home, .fid = claim->fid, .name = claim->name};
        report_late(*stores, "store.replaced_late", gone, *late);
    }
    co_return true;
}

struct OwnName {
    std::string name;
    std::uint64_t version = 0;
};

Task<Result<bool>> name_at_home(Stores* stores, const store::NameClaim* claim, const OwnName* own,
                                const LateOwner* by) {
    HomeVolume* const home = stores->find(claim->fid.slot());
    if (home == nullptr) co_return std::unexpected(kNoDisk);
    const core::WaitOptions wait{.cancel = &stores->stopping()};
    Loser loser(*home);
    // Its new name may be longer than the old one.
    const RecordRoom wanted{.bytes = store::kPutRecordBytesMax, .purpose = store::Purpose::kAdding};
    auto room = co_await hold_loser(&loser, claim, wanted, wait);
    if (!room) co_return std::unexpected(room.error());
    const auto found = find_loser(loser, *claim);
    if (!found) co_return std::unexpected(found.error());
    if (!*found) co_return false;
    store::Object object = **found;
    object.name = own->name;
    object.name_version = own->version;
    object.changed = stores->parts().clock.wall();
    object.next_attributes();
    loser.change.put_object(claim->fid, object);
    const auto finished = co_await loser.change.commit(std::move(*room));
    if (!finished) co_return std::unexpected(finished.error());
    const LateObject renamed{.home = *home, .fid = claim->fid, .name = own->name};
    report_late(*stores, "store.renamed_late", renamed, *by);
    co_return true;
}

Task<Result<std::string>> principal_at_home(Stores* stores, store::Fid fid) {
    HomeVolume* const home = stores->find(fid.slot());
    if (home == nullptr) co_return std::unexpected(kNoDisk);
    const auto object = home->volume().map().find(fid);
    if (!object) co_return std::unexpected(object.error());
    if (!*object) {
        co_return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "the object that has the name is gone"});
    }
    co_return std::string((*object)->owner);
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
        Result<void> settled{};
        do {
            settled = co_await settle_page();
        } while (settled && behind_ && !stores_.stopping().cancelled());
        if (!settled) {
            const auto slept =
                co_await stores_.parts().reactor.sleep_for(kRetryAfter, &stores_.stopping());
            if (!slept) co_return;
            continue;
        }
        const auto more = co_await part_.shard().wait_replaced(known, wait);
        if (!more) co_return;
    }
}

Task<Result<void>> ReplacedObjects::settle_page() {
    store::NameShard::Replaced which{.behind = std::exchange(behind_, std::nullopt)};
    auto task = part_.shard().replaced(std::move(which));
    const auto page = co_await std::move(task);
    if (!page) co_return std::unexpected(page.error());
    Result<void> all{};
    for (std::size_t i = 0; i < page->claims.size(); ++i) {
        if (stores_.stopping().cancelled()) co_return Result<void>{};
        const auto settled = co_await settle(&page->claims[i]);
        // No room in the log: there will be some later.
        if (!settled && settled.error().code == Errc::kNoSpace) all = settled;
    }
    if (!page->end && !page->claims.empty()) behind_ = page->claims.back();
    co_return all;
}

// `job` makes a task of the home's stores.
template <typename Value, typename Job>
Task<Result<Value>> ReplacedObjects::run_at_home(store::Slot slot, Job* job) {
    const LayoutSlot* const found = stores_.layout().find_slot(slot);
    if (found == nullptr) co_return std::unexpected(kNoDisk);
    Stores& home = stores_.at(found->locality);
    auto there = [&home, job] { return (*job)(&home); };
    const auto done = co_await core::run_task_on<Result<Value>>(
        stores_.parts().reactor, home.parts().reactor, home.duties(), there);
    if (!done) {
        co_return std::unexpected(
            Error{.code = Errc::kClosed, .context = "the server is stopping"});
    }
    co_return *done;
}

// An object whose disk is missing or read-only stays until that changes.
Task<Result<void>> ReplacedObjects::settle(const store::NameClaim* claim) {
    const auto by = part_.shard().find({.pool = claim->pool, .name = claim->name});
    if (!by) co_return std::unexpected(by.error());
    if (!*by || (*by)->fid == claim->fid) co_return Result<void>{};
    if (!part_.shard().was_replaced_knowingly(*claim)) {
        co_return co_await settle_late(claim, (*by)->fid);
    }
    auto remove = [claim](Stores* home) { return remove_at_home(home, claim, nullptr); };
    const auto removed = co_await run_at_home<bool>(claim->fid.slot(), &remove);
    if (!removed) co_return std::unexpected(removed.error());
    co_return Result<void>{};
}

Task<Result<void>> ReplacedObjects::settle_late(const store::NameClaim* claim, store::Fid by) {
    auto ask = [by](Stores* home) { return principal_at_home(home, by); };
    auto principal = co_await run_at_home<std::string>(by.slot(), &ask);
    if (!principal) co_return std::unexpected(principal.error());
    const LateOwner late{.fid = by, .principal = std::move(*principal)};
    auto remove = [claim, &late](Stores* home) { return remove_at_home(home, claim, &late); };
    const auto removed = co_await run_at_home<bool>(claim->fid.slot(), &remove);
    if (!removed) co_return std::unexpected(removed.error());
    if (*removed) co_return Result<void>{};
    co_return co_await name_anew(claim, &late);
}

Task<Result<void>> ReplacedObjects::name_anew(const store::NameClaim* claim, const LateOwner* by) {
    OwnName own{.name = own_name(claim->name, claim->fid)};
    Names& names = stores_.parts().names;
    const core::WaitOptions wait{.cancel = &stores_.stopping()};
    const ObjectName wanted{.pool = claim->pool, .name = own.name};
    auto hold = names.hold(wanted, wait);
    const auto held = co_await std::move(hold);
    if (!held) co_return std::unexpected(held.error());
    own.version = held->version;
    Result<bool> named = false;
    if (!held->owner) {
        auto name = [claim, &own, by](Stores* home) { return name_at_home(home, claim, &own, by); };
        named = co_await run_at_home<bool>(claim->fid.slot(), &name);
    }
    co_await names.let_go(*held);
    if (!named) co_return std::unexpected(named.error());
    co_return Result<void>{};
}

}  // namespace fopd::objects
