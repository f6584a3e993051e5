#include "reqh/attributes.h"

#include <utility>

#include "objects/fids.h"
#include "reqh/caller.h"
#include "reqh/object_fops.h"

namespace fopd::reqh {

namespace {

std::uint64_t unix_ns(WallTime time) {
    return static_cast<std::uint64_t>(time.unix_ns);
}

// The right to own an object does not permit giving it away, because the owner is charged for its
// space.
Granted<> may_change(const Operation& operation, const fop::SetAttributes& set) {
    const Matter matter{.pool = operation.object().pool, .object = objects::store_fid(set.fid)};
    if (operation.access().may_administer(matter)) return {};
    const fabric::Caller& caller = operation.caller();
    const bool gives_away =
        (set.which & fop::SetAttributes::kOwner) != 0 && set.owner != acting_user(caller);
    if (gives_away)
        return refused(fop::Status::kDenied, "only an administrator may change the owner");
    const bool has_foreign_group = (set.which & fop::SetAttributes::kGroup) != 0 &&
                                   !set.group.empty() &&
                                   !objects::is_in_group(actor_of(caller), set.group);
    if (has_foreign_group)
        return refused(fop::Status::kDenied, "you are not a member of that group");
    return {};
}

// An object's space and number are charged to its owner.
Task<Granted<>> move_charge(Operation* operation, const fop::SetAttributes* set) {
    const std::string_view owner = operation->object().owner;
    const bool changes_owner =
        (set->which & fop::SetAttributes::kOwner) != 0 && set->owner != owner;
    if (!changes_owner) co_return Granted<>{};
    const auto blocks = co_await count_owned(operation, objects::store_fid(set->fid));
    if (!blocks) co_return refused(blocks.error());
    const objects::Amount amount{.blocks = *blocks, .objects = 1};
    const auto charged =
        operation->space().charge({.pool = operation->object().pool, .owner = set->owner}, amount,
                                  objects::DiskUse::Scope::kOwner);
    if (!charged) co_return charged;
    operation->change().will_free(objects::owner_of(operation->object()), amount,
                                  objects::DiskUse::Scope::kOwner);
    co_return Granted<>{};
}

}  // namespace

Task<Granted<std::uint64_t>> count_blocks(Operation* operation, store::Fid fid) {
    const auto blocks = co_await operation->volume().count_blocks(fid, operation->wait());
    if (!blocks) co_return refused(untraced(blocks.error()));
    co_return *blocks;
}

Task<Granted<std::uint64_t>> count_owned(Operation* operation, store::Fid fid) {
    const auto blocks = co_await operation->volume().count_owned(fid, operation->wait());
    if (!blocks) co_return refused(untraced(blocks.error()));
    co_return *blocks;
}

Task<Granted<fop::Attributes>> look_at_object(Operation* operation, store::Fid fid) {
    const auto locked = co_await operation->lock_to_look(fid);
    if (!locked) co_return refused(locked.error());
    const auto loaded = operation->load_object(fid, objects::Access::kRead);
    if (!loaded) co_return refused(loaded.error());
    operation->enter(Phase::kExecute);
    const store::Object& object = operation->object();
    const objects::ObjectState state = operation->target().durable_state(fid);
    const auto blocks = co_await count_blocks(operation, fid);
    if (!blocks) co_return refused(blocks.error());
    co_return fop::Attributes{.fid = objects::fop_fid(fid),
                              .size_bytes = state.size_bytes,
                              .version = state.version,
                              .created_ns = unix_ns(object.created),
                              .changed_ns = unix_ns(state.changed),
                              .allocated_bytes = *blocks * fop::kBlockBytes,
                              .incarnation = operation->durable_receipt().incarnation,
                              .owner = object.owner,
                              .group = object.group,
                              .name = object.name,
                              .mode = object.mode,
                              .collection = object.collection};
}

Task<fop::Reply> run_stat(Operation* operation) {
    const store::Fid fid = objects::store_fid(operation->body<fop::Stat>().fid);
    const auto attributes = co_await look_at_object(operation, fid);
    if (!attributes) co_return operation->refuse(attributes.error());
    co_return fop::Reply{.body = fop::StatReply{.attributes = *attributes}};
}

void set_attributes(const fop::SetAttributes& wanted, store::Object& object) {
    if ((wanted.which & fop::SetAttributes::kOwner) != 0) object.owner = wanted.owner;
    if ((wanted.which & fop::SetAttributes::kGroup) != 0) object.group = wanted.group;
    if ((wanted.which & fop::SetAttributes::kMode) != 0) object.mode = wanted.mode;
}

Task<fop::Reply> run_set_attributes(Operation* operation) {
    const auto& set = operation->body<fop::SetAttributes>();
    const store::Fid fid = objects::store_fid(set.fid);
    const auto locked = co_await operation->lock_whole(fid);
    if (!locked) co_return operation->refuse(locked.error());
    const auto loaded = operation->load_object(fid, objects::Access::kOwn);
    if (!loaded) co_return operation->refuse(loaded.error());
    const auto allowed = may_change(*operation, set);
    if (!allowed) co_return operation->refuse(allowed.error());
    const auto serving = operation->check_serving();
    if (!serving) co_return operation->refuse(serving.error());
    const auto moved = co_await move_charge(operation, &set);
    if (!moved) co_return operation->refuse(moved.error());
    auto room =
        co_await operation->reserve(store::kPutRecordBytesMax + objects::kReplyRecordBytesMax);
    if (!room) co_return operation->refuse(room.error());

    store::Object object = operation->object();
    set_attributes(set, object);
    object.next_attributes();
    object.changed = operation->wall();
    operation->change().put_object(fid, object);
    operation->put_reply({.type = operation->request().type,
                          .version = object.version,
                          .size_bytes = object.size_bytes});
    const auto receipt = co_await operation->commit_durable(std::move(*room));
    if (!receipt) co_return operation->refuse(receipt.error());
    co_return fop::Reply{.body =
                             fop::SetAttributesReply{.changed = {.version = object.version,
                                                                 .size_bytes = object.size_bytes,
                                                                 .receipt = *receipt}}};
}

}  // namespace fopd::reqh
