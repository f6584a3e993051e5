#include "reqh/operation.h"

#include <utility>

#include "core/events.h"
#include "objects/fids.h"
#include "reqh/executors.h"
#include "reqh/tape_fops.h"

namespace fopd::reqh {

Task<fop::Reply> Operation::run(Site site) {
    move_to(site);
    const Executor& executor = executor_of(type());
    if (executor.needs_stores && site.stores == nullptr) {
        // Its disks may be missing from the configuration: nothing is said to be gone.
        co_return refuse(
            {.status = fop::Status::kMediumMissing, .words = "the server has no disks"});
    }
    if (executor.slot == nullptr) co_return co_await run_here();
    const auto locality = layout_.locality_of(executor.slot(request()));
    if (!locality) co_return refuse(locality.error());
    auto job = [this] { return run_granted(); };
    auto reply = co_await run_at<fop::Reply>(*locality, job);
    if (!reply) co_return refuse(reply.error());
    co_return *reply;
}

Task<Granted<fop::Reply>> Operation::run_granted() {
    const fop::Reply reply = co_await run_here();
    co_return reply;
}

Task<fop::Reply> Operation::run_here() {
    const fop::Reply reply = co_await run_once();
    leave();
    co_await names_.let_go();
    co_return reply;
}

Task<fop::Reply> Operation::run_once() {
    const Executor& executor = executor_of(type());
    if (executor.slot != nullptr) {
        const auto homed = find_home(executor.slot(request()));
        if (!homed) co_return refuse(homed.error());
    }
    if (executor.told_again != nullptr) {
        const auto earlier = co_await find_recorded_reply();
        if (!earlier) co_return refuse(earlier.error());
        if (earlier->has_value()) co_return **earlier;
    }
    const fop::Reply reply = co_await executor.run(this);
    if (reply.status == fop::Status::kStagingFull) {
        leave();
        ask_for_room(this, executor.slot(request()), space_.wanted_free_blocks());
    }
    if (reply.status != fop::Status::kStaging) co_return reply;
    leave();
    co_return co_await ask_for_recall(this, objects::store_fid(executor.aim(request()).object));
}

const store::Object* Operation::known_object() const {
    const Executor& executor = executor_of(type());
    if (executor.aim == nullptr) return nullptr;
    return target_.known(objects::store_fid(executor.aim(request()).object));
}

// Nothing of it is in any list of the locality any more.
void Operation::leave() {
    change_.give_back();
    space_.give_back();
    change_.clear();
    work_.staged.clear();
    reading_.unlink();
    lock_.release();
    recorded_replies_.end();
    hold() = objects::HomeVolume::Hold();
}

// -- the locality and the disk --

Granted<> Operation::find_home(store::Slot slot) {
    select_none();
    const auto found = layout_.find_home(slot);
    if (!found) return refused(found.error());
    select(**found);
    if (device_.empty()) device_ = home().device_name();
    change_.use(home());
    io_.use({.reactor = &reactor(), .scheduler = &stores().parts().io, .medium = home().medium()});
    return {};
}

Granted<objects::PoolId> Operation::check_takes_new() const {
    const auto pool = layout_.find_pool();
    if (!pool) return pool;
    const objects::LayoutPool* const found = stores().layout().find_pool(*pool);
    if (found == nullptr || found->disk_pool() != home().pool()) {
        return refused(fop::Status::kWrongPool, "the slot is in another pool");
    }
    if (home().is_leaving()) {
        return refused(fop::Status::kReadOnly, "its disk is being removed");
    }
    const auto serving = check_serving();
    if (!serving) return refused(serving.error());
    return *pool;
}

// -- locks and recorded replies --

Task<Granted<>> Operation::lock(objects::LockRequest request) {
    enter(Phase::kDistributedResources);
    const Waiting waiting =
        waits_for({.what = WaitsFor::kLock, .object = request.fid, .blocks = request.range});
    const auto locked = co_await home().locks().acquire(lock_, request, wait());
    if (!locked) co_return refused(locked.error());
    co_return Granted<>{};
}

Task<Granted<std::optional<fop::Reply>>> Operation::find_recorded_reply() {
    const auto recorded = co_await recorded_replies_.find();
    if (!recorded) co_return refused(recorded.error());
    if (!recorded->has_value()) co_return std::nullopt;
    co_return executor_of(type()).told_again(*this, **recorded);
}

// -- objects --

Granted<> Operation::load_object(store::Fid fid, objects::Access access) {
    const auto loaded = target_.load(fid, access);
    if (loaded) change_.set_block_owner(objects::owner_of(object()));
    return loaded;
}

Granted<> Operation::load_upload(store::Fid fid) {
    const auto loaded = target_.load_upload(fid);
    if (loaded) change_.set_block_owner(objects::owner_of(object()));
    return loaded;
}

Task<Granted<>> Operation::look_at(store::Fid fid, objects::Access access) {
    const auto locked = co_await lock_to_look(fid);
    if (!locked) co_return locked;
    const auto loaded = load_object(fid, access);
    unlock();
    co_return loaded;
}

// -- changes --

Task<Granted<store::Reservation>> Operation::reserve(std::size_t more_bytes,
                                                     store::Purpose purpose) {
    enter(Phase::kTransaction);
    if (change_.records_bytes() + more_bytes > volume().records_bytes_max()) {
        co_return refused(fop::Status::kNoSpace, "its records do not fit into the log at once");
    }
    std::optional<Waiting> waiting(std::in_place, *origin().progress, reactor(),
                                   Wait{.what = WaitsFor::kLogRoom});
    auto reserved = co_await change_.reserve(more_bytes, wait(), purpose);
    waiting.reset();
    if (!reserved) co_return refused(why_not_changed(reserved.error()));
    enter(Phase::kExecute);
    const auto wanted = check_wanted();
    if (!wanted) co_return refused(wanted.error());
    co_return std::move(*reserved);
}

Refusal Operation::why_not_changed(const Error& error) {
    const auto serving = check_serving();
    if (!serving) return serving.error();
    const Refusal refusal = untraced(error);
    if (error.code != Errc::kNoSpace) return refusal;
    return space_.why_full(change_.block_owner().pool, 1, refusal.words);
}

Granted<> Operation::begin_change(store::Reservation reservation, store::Durability durability,
                                  store::Data data) {
    const bool has_one_reply_more = recorded_replies_.fills_place();
    const auto begun = change_.begin(std::move(reservation), durability, data);
    if (!begun) return refused(why_not_changed(begun.error()));
    if (has_one_reply_more) recorded_replies_.keep_room();
    return {};
}

objects::ChangedRanges::Change Operation::changed_range(store::Fid fid, const fop::Range& range,
                                                        const store::LastWriter& before) const {
    return {.fid = fid, .range = range, .writer = {caller().owner}, .before = before};
}

store::LastWriter Operation::last_writer(const store::LastWriter& before) const {
    return home().changed_ranges().last_writer(before, {caller().owner});
}

Task<Granted<fop::Receipt>> Operation::finish_change(store::Data data) {
    if (data == store::Data::kPending) {
        const auto written = co_await change_.write_data(&io_);
        if (!written) {
            const std::string_view why = written.error().context;
            co_return refused(fop::Status::kOutcomeUnknown,
                              why.empty() ? "the disk failed a write" : why);
        }
    }
    const Waiting waiting = waits_for({.what = WaitsFor::kLog});
    const auto finished = co_await change_.finish();
    if (!finished)
        co_return refused(fop::Status::kOutcomeUnknown, "the log of the disk has failed");
    names_.let_go_after_change();
    co_return fop::Receipt{
        .incarnation = finished->epoch, .seq = finished->seq, .slot = home().slot()};
}

Task<Granted<fop::Receipt>> Operation::commit_durable(store::Reservation reservation) {
    const auto begun =
        begin_change(std::move(reservation), store::Durability::kDurable, store::Data::kNone);
    if (!begun) co_return refused(begun.error());
    co_return co_await finish_change(store::Data::kNone);
}

// -- answers --

fop::Changed Operation::changed_then(const objects::RecordedReply& reply) const {
    return {.version = reply.version, .size_bytes = reply.size_bytes, .receipt = durable_receipt()};
}

fop::Receipt Operation::durable_receipt() const {
    return {.incarnation = volume().newest().epoch,
            .seq = volume().durable_seq(),
            .slot = home().slot()};
}

Refusal Operation::corrupt(store::Fid fid, std::uint64_t block) {
    const Refusal refusal = words_.block_damaged(fid, block);
    home().checksum_errors().add(1);
    home().met_damage().add(fid, block);
    home().damage_changed();
    const std::string object = objects::format_fid(fid);
    const std::string name = home().name_of(fid);
    core::emit(stores().parts().events, core::Level::kError, "store.block_damaged",
               {{"device", home().device_name()},
                {"slot", std::uint64_t{home().slot()}},
                {"object", std::string_view(object)},
                {"name", std::string_view(name)},
                {"block", block},
                {"what", refusal.words}});
    return refusal;
}

}  // namespace fopd::reqh
