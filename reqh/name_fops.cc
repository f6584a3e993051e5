#include "reqh/name_fops.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/remote_task.h"
#include "fop/listing.h"
#include "objects/fids.h"
#include "reqh/attributes.h"
#include "reqh/caller.h"
#include "reqh/object_fops.h"

namespace fopd::reqh {

namespace {

// How often other clients may change the name or object concurrently before the fop gives up.
constexpr unsigned kTriesMax = 16;
constexpr std::uint32_t kNamesAtATime = 256;

Refusal gone() {
    return {.status = fop::Status::kNotFound, .words = "there is no such object"};
}
Refusal too_busy() {
    return {.status = fop::Status::kBusy, .words = "too many concurrent changes of this name"};
}

Task<Granted<>> check_at_home(Operation* operation, store::Fid fid) {
    const auto homed = operation->find_home(fid.slot());
    if (!homed) co_return homed;
    const auto allowed = operation->target().look_at_replaced(fid);
    // The object is gone already: no permission is needed.
    if (!allowed && allowed.error().status == fop::Status::kNotFound) co_return Granted<>{};
    co_return allowed;
}

}  // namespace

Task<Granted<>> check_may_replace(Operation* operation, store::Fid fid) {
    const auto locality = operation->layout().locality_of(fid.slot());
    if (!locality) co_return refused(locality.error());
    const store::Slot own = operation->home().slot();
    const auto job = [operation, fid] { return check_at_home(operation, fid); };
    const auto allowed = co_await operation->run_at<void>(*locality, job);
    const auto back = operation->find_home(own);
    if (!back) co_return back;
    co_return allowed;
}

Task<Granted<>> hold_for_new_object(Operation* operation, NewName name) {
    const std::array wanted{HeldNames::Wanted{.name = name.name}};
    const auto held = co_await operation->names().hold(wanted);
    if (!held) co_return held;
    const auto& owner = operation->names().at(0).owner;
    // With no_replace, the name must also be free on disks that are missing now.
    if (!owner && name.no_replace) co_return operation->layout().check_names_known(name.name.pool);
    if (!owner) co_return Granted<>{};
    if (name.no_replace) co_return refused(fop::Status::kExists, "the name is taken");
    co_return co_await check_may_replace(operation, owner->fid);
}

Granted<std::string_view> group_for(const Operation& operation, objects::PoolId pool,
                                    std::string_view group) {
    const fabric::Caller& caller = operation.caller();
    if (group.empty()) {
        const bool has_none = caller.groups.empty() || acting_user(caller) != caller.principal;
        return has_none ? std::string_view() : std::string_view(caller.groups.front());
    }
    if (!operation.access().may_administer({.pool = pool}) &&
        !objects::is_in_group(actor_of(caller), group)) {
        return refused(fop::Status::kDenied, "you are not a member of that group");
    }
    return group;
}

// -- create --

Task<fop::Reply> run_create(Operation* operation) {
    const auto& create = operation->body<fop::Create>();
    const auto pool = operation->check_takes_new();
    if (!pool) co_return operation->refuse(pool.error());
    const auto group = group_for(*operation, *pool, create.group);
    if (!group) co_return operation->refuse(group.error());
    const bool is_named = !create.name.empty();
    if (is_named) {
        const NewName name{.name = {.pool = *pool, .name = create.name},
                           .no_replace = create.no_replace};
        const auto held = co_await hold_for_new_object(operation, name);
        if (!held) co_return operation->refuse(held.error());
    }
    operation->enter(Phase::kAuthorise);
    const objects::PoolOwner owner{.pool = *pool, .owner = acting_user(operation->caller())};
    const auto charged = operation->space().charge(owner, {.objects = 1});
    if (!charged) co_return operation->refuse(charged.error());
    auto room =
        co_await operation->reserve(store::kPutRecordBytesMax + objects::kReplyRecordBytesMax);
    if (!room) co_return operation->refuse(room.error());

    const store::Fid fid = operation->home().make_fid();
    const WallTime now = operation->wall();
    const store::Object object{.version = 1,
                               .created = now,
                               .changed = now,
                               .pool = *pool,
                               .mode = create.mode,
                               .last_writer = operation->last_writer({}),
                               .owner = owner.owner,
                               .group = *group,
                               .name = create.name,
                               .name_version = is_named ? operation->names().at(0).version : 0,
                               .collection = create.collection};
    operation->change().put_object(fid, object);
    operation->change().will_come(fid, object.pool);
    operation->put_reply(
        {.type = operation->request().type, .fid = fid, .version = object.version});
    const auto receipt = co_await operation->commit_durable(std::move(*room));
    if (!receipt) co_return operation->refuse(receipt.error());
    co_return fop::Reply{.body = fop::CreateReply{.fid = objects::fop_fid(fid),
                                                  .version = object.version,
                                                  .receipt = *receipt}};
}

// -- lookup and list --

namespace {

Task<Granted<fop::Attributes>> look_and_leave(Operation* operation, store::Fid fid) {
    const auto homed = operation->find_home(fid.slot());
    if (!homed) co_return refused(homed.error());
    const auto attributes = co_await look_at_object(operation, fid);
    operation->leave();
    co_return attributes;
}

}  // namespace

Task<fop::Reply> run_lookup(Operation* operation) {
    const auto& lookup = operation->body<fop::Lookup>();
    const auto pool = operation->layout().find_pool();
    if (!pool) co_return operation->refuse(pool.error());
    for (unsigned tries = 0; tries < kTriesMax; ++tries) {
        operation->enter(Phase::kDistributedResources);
        const objects::ObjectName name{.pool = *pool, .name = lookup.name};
        auto finding = operation->stores().parts().names.find(name);
        const auto found = co_await operation->elsewhere(std::move(finding));
        if (!found) co_return operation->refuse(untraced(found.error()));
        const store::Fid fid = found->has_value() ? (*found)->fid : store::Fid{};
        // If the sender may only access one object, it gets the same refusal for every other name,
        // including free ones.
        const auto right = operation->access().check_right({.pool = *pool, .object = fid});
        if (!right) co_return operation->refuse(right.error());
        if (!found->has_value())
            co_return operation->refuse(operation->layout().why_no_name(*pool));
        if (operation->stores().layout().find_slot(fid.slot()) == nullptr) {
            co_return operation->refuse(
                {.status = fop::Status::kMediumMissing,
                 .words = "it is on a disk that this node does not know any more"});
        }
        const auto locality = operation->layout().locality_of(fid.slot());
        if (!locality) co_return operation->refuse(locality.error());
        const auto job = [operation, fid] { return look_and_leave(operation, fid); };
        const auto attributes = co_await operation->run_at<fop::Attributes>(*locality, job);
        // The object may have lost the name, and been removed, meanwhile.
        const bool has_gone = !attributes && attributes.error().status == fop::Status::kNotFound;
        if (has_gone || (attributes && attributes->name != lookup.name)) continue;
        if (!attributes) co_return operation->refuse(attributes.error());
        co_return fop::Reply{.body = fop::LookupReply{.attributes = *attributes}};
    }
    co_return operation->refuse(too_busy());
}

namespace {

// An object's entry in a list, apart from its name.
struct Listed {
    store::Fid fid{};
    std::uint64_t size_bytes = fop::kSizeUnknown;
    WallTime changed{};
    bool is_gone = false;
    bool is_uncertain = false;
};

// Fills in the entries whose home is this locality. An entry whose disk is missing, or whose object
// the caller may not read, stays unchanged.
void look_at_homed(const Operation& operation, objects::Stores& there, std::span<Listed> listed) {
    for (Listed& each : listed) {
        const objects::LayoutSlot* const found = there.layout().find_slot(each.fid.slot());
        if (found == nullptr || found->locality != there.parts().locality) continue;
        objects::HomeVolume* const home = there.find(each.fid.slot());
        if (home == nullptr) continue;
        each.is_uncertain = home->volume().is_uncertain(each.fid);
        const auto object = home->volume().map().find(each.fid);
        if (!object) continue;
        each.is_gone = !object->has_value();
        if (each.is_gone || !operation.access().may_read(each.fid, **object)) continue;
        each.size_bytes = (*object)->size_bytes;
        each.changed = (*object)->changed;
        if (const auto state = home->locks().durable_state(each.fid)) {
            each.size_bytes = state->size_bytes;
            each.changed = state->changed;
        }
    }
}

// Runs on the other locality.
Task<bool> look_there(const Operation* operation, objects::Stores* there,
                      std::span<Listed> listed) {
    co_await there->parts().reactor.long_step();
    look_at_homed(*operation, *there, listed);
    co_return true;
}

Task<Granted<>> look_everywhere(Operation* operation, std::span<Listed> listed) {
    for (objects::Stores* const there : operation->stores().all()) {
        if (there == &operation->stores()) {
            co_await look_there(operation, there, listed);
            continue;
        }
        const auto job = [operation, there, listed] {
            return look_there(operation, there, listed);
        };
        const auto looked = co_await core::run_task_on<bool>(
            operation->reactor(), there->parts().reactor, there->duties(), job);
        if (!looked) co_return refused(fop::Status::kTryAgain, "the server is stopping");
    }
    co_return Granted<>{};
}

// If an object was removed meanwhile, its name may already belong to another one: the name existed
// all the time.
Task<Granted<>> look_at_successors(Operation* operation, objects::PoolId pool,
                                   const objects::NameList* names, std::span<Listed> listed) {
    for (unsigned tries = 0; tries < kTriesMax; ++tries) {
        if (std::ranges::none_of(listed, &Listed::is_gone)) break;
        co_await operation->reactor().long_step();
        bool is_any = false;
        for (std::size_t i = 0; i < listed.size(); ++i) {
            if (!listed[i].is_gone) continue;
            const objects::ObjectName name{.pool = pool, .name = names->entries[i].name};
            auto finding = operation->stores().parts().names.find(name);
            const auto found = co_await operation->elsewhere(std::move(finding));
            if (!found) co_return refused(untraced(found.error()));
            if (!found->has_value() || (*found)->fid == listed[i].fid) continue;
            listed[i] = {.fid = (*found)->fid};
            is_any = true;
        }
        if (!is_any) break;
        const auto looked = co_await look_everywhere(operation, listed);
        if (!looked) co_return looked;
    }
    co_return Granted<>{};
}

}  // namespace

Task<fop::Reply> run_list(Operation* operation) {
    const auto& list = operation->body<fop::ListObjects>();
    const auto pool = operation->layout().find_pool();
    if (!pool) co_return operation->refuse(pool.error());
    operation->enter(Phase::kExecute);
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    operation->work().text = list.cursor;
    std::uint32_t count = 0;
    bool is_full = false;
    bool is_end = false;
    std::vector<Listed> listed;
    while (!is_full && !is_end) {
        const auto wanted = operation->check_wanted();
        if (!wanted) co_return operation->refuse(wanted.error());
        const objects::NameListRequest request{.pool = *pool,
                                               .prefix = list.prefix,
                                               .cursor = operation->work().text,
                                               .count_max = kNamesAtATime};
        auto listing = operation->stores().parts().names.list(request);
        const auto names = co_await operation->elsewhere(std::move(listing));
        if (!names) co_return operation->refuse(untraced(names.error()));
        listed.clear();
        for (const objects::ListedName& each : names->entries) listed.push_back({.fid = each.fid});
        const auto looked = co_await look_everywhere(operation, listed);
        if (!looked) co_return operation->refuse(looked.error());
        const auto replaced = co_await look_at_successors(operation, *pool, &*names, listed);
        if (!replaced) co_return operation->refuse(replaced.error());
        if (std::ranges::any_of(listed, &Listed::is_uncertain)) {
            co_return operation->refuse(
                {.status = fop::Status::kReadOnly,
                 .words = "a disk has failed; whether all names were removed is known after a "
                          "restart of the server"});
        }
        is_end = names->end;
        for (std::size_t i = 0; i < listed.size() && !is_full; ++i) {
            const objects::ListedName& name = names->entries[i];
            if (!listed[i].is_gone) {
                is_full = (list.count_max > 0 && count == list.count_max) ||
                          !writer.add(
                              {.fid = objects::fop_fid(listed[i].fid),
                               .size_bytes = listed[i].size_bytes,
                               .changed_ns = static_cast<std::uint64_t>(listed[i].changed.unix_ns),
                               .name = name.name});
                if (is_full) break;
                ++count;
            }
            operation->work().text = name.name;
        }
    }
    if (is_end && !is_full) {
        // Existing entries are returned first, then the error that the list may be incomplete.
        const auto known = operation->layout().check_names_known(
            *pool, "there may be others, on a disk that is missing or incomplete");
        if (!known && count == 0) co_return operation->refuse(known.error());
        is_end = known.has_value();
    }
    co_return fop::Reply{
        .payload = writer.written(),
        .body = fop::ListObjectsReply{.cursor = operation->work().text, .end = is_end && !is_full}};
}

// -- rename, delete: fops on an object that may have a name --

namespace {

// The object's pool, and its present name, which may change before it is held.
Task<Granted<>> read_name(Operation* operation, store::Fid fid) {
    const auto locked = co_await operation->lock_to_look(fid);
    if (!locked) co_return locked;
    const auto certain = operation->check_certain(fid);
    if (!certain) co_return certain;
    const auto found = operation->volume().map().find(fid);
    operation->unlock();
    if (!found) co_return refused(found.error());
    if (!found->has_value()) co_return refused(gone());
    operation->work().text = (*found)->name;
    operation->work().pool = (*found)->pool;
    co_return Granted<>{};
}

// Whether the object still has the name that the client expects, if it gave one.
Granted<> check_meant(Operation& operation, std::string_view from) {
    if (from.empty() || from == operation.work().text) return {};
    return refused(fop::Status::kNotFound, "the object has another name");
}

// Holds the names; the first one is the object's name that was read. False: that name is free now,
// so the object was renamed or removed.
Task<Granted<bool>> hold_read_name(Operation* operation,
                                   std::span<const HeldNames::Wanted> wanted) {
    const auto held = co_await operation->names().hold(wanted);
    if (held) co_return true;
    if (held.error().status != fop::Status::kNotFound) co_return refused(held.error());
    co_await operation->names().let_go();
    co_return false;
}

// Locks the object after its names are held. False: it has another name now.
Task<Granted<bool>> lock_named(Operation* operation, store::Fid fid) {
    const auto locked = co_await operation->lock_whole(fid);
    if (!locked) co_return refused(locked.error());
    const auto loaded = operation->load_object(fid, objects::Access::kWrite);
    if (!loaded) co_return refused(loaded.error());
    if (operation->object().name == operation->work().text) co_return true;
    operation->unlock();
    co_await operation->names().let_go();
    co_return false;
}

// Another object has the name: this object was replaced and will be removed.
bool is_replaced(const Operation& operation, store::Fid fid) {
    const auto& owner = operation.names().at(0).owner;
    return !owner || owner->fid != fid;
}

// Holds the new name and the old one, if any, and locks the object.
Task<Granted<bool>> take_for_rename(Operation* operation, const fop::Rename* rename) {
    const store::Fid fid = objects::store_fid(rename->fid);
    const auto read = co_await read_name(operation, fid);
    if (!read) co_return refused(read.error());
    const auto meant = check_meant(*operation, rename->from);
    if (!meant) co_return refused(meant.error());
    const objects::PoolId pool = operation->work().pool;
    const bool is_named = !operation->work().text.empty();
    const bool stays = operation->work().text == rename->name;
    const std::array wanted{
        HeldNames::Wanted{.name = {.pool = pool, .name = operation->work().text},
                          .to_remove = !stays},
        HeldNames::Wanted{.name = {.pool = pool, .name = rename->name}}};
    const auto needed =
        stays ? std::span(wanted).first(1) : std::span(wanted).subspan(is_named ? 0 : 1);
    const auto held = co_await hold_read_name(operation, needed);
    if (!held || !*held) co_return held;
    const auto locked = co_await lock_named(operation, fid);
    if (!locked || !*locked) co_return locked;
    if (is_named && is_replaced(*operation, fid)) co_return refused(gone());
    if (stays) co_return true;
    const auto& owner = operation->names().at(is_named ? 1 : 0).owner;
    if (!owner && rename->no_replace) {
        const auto known = operation->layout().check_names_known(pool);
        if (!known) co_return refused(known.error());
    }
    if (!owner) co_return true;
    if (rename->no_replace) co_return refused(fop::Status::kExists, "the name is taken");
    const auto allowed = co_await check_may_replace(operation, owner->fid);
    if (!allowed) co_return refused(allowed.error());
    co_return true;
}

}  // namespace

Task<fop::Reply> run_rename(Operation* operation) {
    const auto& rename = operation->body<fop::Rename>();
    const store::Fid fid = objects::store_fid(rename.fid);
    bool is_taken = false;
    for (unsigned tries = 0; tries < kTriesMax && !is_taken; ++tries) {
        const auto taken = co_await take_for_rename(operation, &rename);
        if (!taken) co_return operation->refuse(taken.error());
        is_taken = *taken;
    }
    if (!is_taken) co_return operation->refuse(too_busy());
    store::Object object = operation->object();
    objects::RecordedReply reply{.type = operation->request().type,
                                 .version = object.version,
                                 .size_bytes = object.size_bytes};
    if (object.name == rename.name) {
        co_return fop::Reply{.body = fop::RenameReply{.changed = operation->changed_then(reply)}};
    }
    const auto serving = operation->check_serving();
    if (!serving) co_return operation->refuse(serving.error());
    auto room =
        co_await operation->reserve(store::kPutRecordBytesMax + objects::kReplyRecordBytesMax);
    if (!room) co_return operation->refuse(room.error());

    object.name_version = operation->names().at(object.name.empty() ? 0 : 1).version;
    object.name = rename.name;
    object.next_attributes();
    reply.version = object.version;
    object.changed = operation->wall();
    operation->change().put_object(fid, object);
    operation->put_reply(reply);
    const auto receipt = co_await operation->commit_durable(std::move(*room));
    if (!receipt) co_return operation->refuse(receipt.error());
    co_return fop::Reply{.body = fop::RenameReply{.changed = {.version = reply.version,
                                                              .size_bytes = reply.size_bytes,
                                                              .receipt = *receipt}}};
}

namespace {

Task<Granted<bool>> take_for_delete(Operation* operation, const fop::Delete* deletion) {
    const store::Fid fid = objects::store_fid(deletion->fid);
    const auto read = co_await read_name(operation, fid);
    if (!read) co_return refused(read.error());
    const auto meant = check_meant(*operation, deletion->from);
    if (!meant) co_return refused(meant.error());
    const bool is_named = !operation->work().text.empty();
    if (is_named) {
        const std::array wanted{HeldNames::Wanted{
            .name = {.pool = operation->work().pool, .name = operation->work().text},
            .to_remove = true}};
        const auto held = co_await hold_read_name(operation, wanted);
        if (!held || !*held) co_return held;
    }
    const auto locked = co_await lock_named(operation, fid);
    if (locked && *locked && is_named && is_replaced(*operation, fid)) co_return refused(gone());
    co_return locked;
}

}  // namespace

Task<fop::Reply> run_delete(Operation* operation) {
    const auto& deletion = operation->body<fop::Delete>();
    const store::Fid fid = objects::store_fid(deletion.fid);
    bool is_taken = false;
    for (unsigned tries = 0; tries < kTriesMax && !is_taken; ++tries) {
        const auto taken = co_await take_for_delete(operation, &deletion);
        if (!taken) co_return operation->refuse(taken.error());
        is_taken = *taken;
    }
    if (!is_taken) co_return operation->refuse(too_busy());
    const auto serving = operation->check_serving();
    if (!serving) co_return operation->refuse(serving.error());
    const auto blocks = co_await count_owned(operation, fid);
    if (!blocks) co_return operation->refuse(blocks.error());
    const store::Object& object = operation->object();
    operation->change().will_free(objects::owner_of(object), {.blocks = *blocks, .objects = 1});
    auto room = co_await operation->reserve(
        store::kRemoveRecordBytes + objects::kReplyRecordBytesMax, store::Purpose::kFreeing);
    if (!room) co_return operation->refuse(room.error());
    operation->change().remove(fid);
    operation->change().will_go(fid, object.pool);
    operation->put_reply({.type = operation->request().type});
    const auto receipt = co_await operation->commit_durable(std::move(*room));
    if (!receipt) co_return operation->refuse(receipt.error());
    co_return fop::Reply{.body = fop::DeleteReply{.receipt = *receipt}};
}

}  // namespace fopd::reqh
