#include <algorithm>
#include <array>
#include <utility>

#include "objects/fids.h"
#include "reqh/block_writer.h"
#include "reqh/object_fops.h"
#include "reqh/operation.h"

namespace fopd::reqh {

namespace {

store::Durability durability_of(fop::Durability durability) {
    return durability == fop::Durability::kBuffered ? store::Durability::kBuffered
                                                    : store::Durability::kDurable;
}

// Makes the fetched bytes of a write part of the object, durably if requested.
class ObjectWrite {
public:
    struct What {
        store::Fid fid{};
        std::span<const fop::Range> ranges{};
        store::Durability durability = store::Durability::kDurable;
        bool is_append = false;
        // If not 0: the write is a repetition, and this incarnation of the log has lost it.
        std::uint64_t lost_in = 0;
    };
    // REQUIRES: the object is loaded, and its blocks are locked; bring() has fetched the bytes, for
    // the offsets in `ranges`.
    ObjectWrite(Operation& operation, BlockWriter& writer, const What& what)
        : operation_(operation), what_(what), writer_(writer) {}

    Task<Granted<fop::Changed>> run();

private:
    Granted<> put_grown_object();
    Granted<> check_still_newest() const;
    void note_changed() const;

    Operation& operation_;
    const What what_;
    BlockWriter& writer_;
    store::LastWriter last_writer_;  // Before the write.
    objects::ObjectState before_;
    objects::ObjectState after_;
};

Task<Granted<fop::Changed>> ObjectWrite::run() {
    const auto written = co_await writer_.write_chunks();
    if (!written) co_return refused(written.error());
    auto room =
        co_await operation_.reserve(store::kPutRecordBytesMax + objects::kReplyRecordBytesMax);
    if (!room) co_return refused(room.error());
    const auto grown = put_grown_object();
    if (!grown) co_return refused(grown.error());
    const auto newest = check_still_newest();
    if (!newest) co_return refused(newest.error());
    const store::Data data =
        writer_.start_last_writes() ? store::Data::kPending : store::Data::kNone;
    const auto begun = operation_.begin_change(std::move(*room), what_.durability, data);
    if (!begun) {
        // The buffer must stay until all writes from it have ended.
        [[maybe_unused]] const auto ended = co_await operation_.io().wait();
        co_return refused(begun.error());
    }
    note_changed();
    objects::RangeLocks& locks = operation_.home().locks();
    locks.change_begun(operation_.held_lock(), before_);
    const auto receipt = co_await operation_.finish_change(data);
    if (!receipt) co_return refused(receipt.error());
    locks.change_shown(operation_.held_lock(), after_);
    co_return fop::Changed{
        .version = after_.version, .size_bytes = after_.size_bytes, .receipt = *receipt};
}

// Other writes may have changed the object's size and version since it was loaded.
Granted<> ObjectWrite::put_grown_object() {
    const auto found = operation_.volume().map().find(what_.fid);
    if (!found) return refused(found.error());
    if (!found->has_value())
        return refused(fop::Status::kInternal, "the object was removed while it was locked");
    store::Object object = **found;
    before_ = {
        .size_bytes = object.size_bytes, .version = object.version, .changed = object.changed};
    for (const fop::Range& range : what_.ranges) {
        if (range.length > 0) object.size_bytes = std::max(object.size_bytes, range.end());
    }
    object.next_content();
    object.changed = operation_.wall();
    last_writer_ = std::exchange(object.last_writer, operation_.last_writer(object.last_writer));
    after_ = {
        .size_bytes = object.size_bytes, .version = object.version, .changed = object.changed};
    operation_.change().put_object(what_.fid, object);
    operation_.put_reply({.type = operation_.request().type,
                          .version = after_.version,
                          .size_bytes = after_.size_bytes,
                          .offset = what_.is_append ? what_.ranges.front().offset : 0});
    return {};
}

// A write that is repeated after it was lost is refused if other clients have changed its bytes
// since.
Granted<> ObjectWrite::check_still_newest() const {
    if (what_.lost_in == 0) return {};
    const objects::ChangedRanges& changed = operation_.home().changed_ranges();
    for (const fop::Range& range : what_.ranges) {
        const auto change = operation_.changed_range(what_.fid, range, last_writer_);
        if (changed.may_be_newer(change, what_.lost_in)) {
            return refused(fop::Status::kLost, "others may have changed these bytes since");
        }
    }
    return {};
}

void ObjectWrite::note_changed() const {
    for (const fop::Range& range : what_.ranges) {
        operation_.home().changed_ranges().add(
            operation_.changed_range(what_.fid, range, last_writer_));
    }
}

fop::Changed unchanged(const Operation& operation) {
    const store::Object& object = operation.object();
    return {.version = object.version,
            .size_bytes = object.size_bytes,
            .receipt = operation.durable_receipt()};
}

// At least so many new blocks the ranges need.
std::uint64_t count_blocks(std::span<const fop::Range> ranges) {
    std::uint64_t blocks = 0;
    for (const fop::Range& each : ranges) blocks += each.length / fop::kBlockBytes;
    return blocks;
}

// What is checked of a write before its bytes are pulled.
struct Coming {
    std::span<const fop::Range> ranges{};
    bool is_append = false;  // The offset of its only range is not known yet.
};

// Counts what the write adds for the quota of the object's owner.
Granted<> count_in_flight(Operation& operation, store::Fid fid, const Coming& coming) {
    if (!coming.is_append) return operation.space().count_in_flight(fid, coming.ranges);
    return operation.space().count_append_in_flight(fid, operation.object().size_bytes,
                                                    coming.ranges.front().length);
}

// Whether the sender may write to the object, checked before its bytes are pulled. The final check
// is made under the lock.
Task<Granted<>> check_before_pull(Operation* operation, store::Fid fid, Coming coming) {
    const auto locked = co_await operation->lock_to_look(fid);
    if (!locked) co_return locked;
    const auto loaded = operation->load_object(fid, objects::Access::kWrite);
    operation->unlock();
    if (!loaded) co_return loaded;
    const auto serving = operation->check_serving();
    // A released object is recalled first.
    if (!serving || operation->object().is_released) co_return serving;
    const auto counted = count_in_flight(*operation, fid, coming);
    if (!counted) co_return counted;
    co_return operation->space().check_staging(operation->object().pool, fid,
                                               count_blocks(coming.ranges));
}

}  // namespace

Task<fop::Reply> run_write(Operation* operation) {
    const auto& write = operation->body<fop::Write>();
    const store::Fid fid = objects::store_fid(write.fid);
    const auto planned = operation->work().plan.begin(write.ranges);
    if (!planned) co_return operation->refuse(refusal_of(planned.error()));
    const store::BlockRange blocks = blocks_of(write.ranges);
    const bool is_empty = blocks.count == 0;
    if (write.source && !is_empty) {
        const Coming coming{.ranges = write.ranges};
        const auto allowed = co_await check_before_pull(operation, fid, coming);
        if (!allowed) co_return operation->refuse(allowed.error());
        const auto on_disk = operation->target().check_on_disk();
        if (!on_disk) co_return operation->refuse(on_disk.error());
    }
    BlockWriter writer(*operation, operation->work().plan, fid,
                       {.ranges = write.ranges,
                        .checksums = write.checksums,
                        .memory = write.source ? &*write.source : nullptr});
    const auto brought = co_await writer.bring();
    if (!brought) co_return operation->refuse(brought.error());
    if (brought->has_value()) co_return **brought;
    const auto locked = co_await operation->lock(lock_for_write(fid, blocks));
    if (!locked) co_return operation->refuse(locked.error());
    const auto loaded = operation->load_object(fid, objects::Access::kWrite);
    if (!loaded) co_return operation->refuse(loaded.error());
    if (is_empty) {
        co_return fop::Reply{.body = fop::WriteReply{.changed = unchanged(*operation)}};
    }
    const auto on_disk = operation->target().check_on_disk();
    if (!on_disk) co_return operation->refuse(on_disk.error());
    const auto serving = operation->check_serving();
    if (!serving) co_return operation->refuse(serving.error());
    if (!write.source) {
        const auto counted = operation->space().count_in_flight(fid, write.ranges);
        if (!counted) co_return operation->refuse(counted.error());
        const auto fits = operation->space().check_beside_uploads(operation->object().pool, fid,
                                                                  count_blocks(write.ranges));
        if (!fits) co_return operation->refuse(fits.error());
    }
    ObjectWrite job(*operation, writer,
                    {.fid = fid,
                     .ranges = write.ranges,
                     .durability = durability_of(write.durability),
                     .lost_in = write.lost_in});
    const auto changed = co_await job.run();
    if (!changed) co_return operation->refuse(changed.error());
    co_return fop::Reply{.body = fop::WriteReply{.changed = *changed}};
}

// The object's end is only known under the lock. The bytes are fetched for the end as seen by
// check_before_pull(), so they need not be moved unless an append with an incomplete block came in
// between.
Task<fop::Reply> run_append(Operation* operation) {
    const auto& append = operation->body<fop::Append>();
    const store::Fid fid = objects::store_fid(append.fid);
    std::array ranges{fop::Range{.offset = 0, .length = append.length}};
    if (append.source) {
        const Coming coming{.ranges = ranges, .is_append = true};
        const auto allowed = co_await check_before_pull(operation, fid, coming);
        if (!allowed) co_return operation->refuse(allowed.error());
        const auto on_disk = operation->target().check_on_disk();
        if (!on_disk && append.length > 0) co_return operation->refuse(on_disk.error());
        ranges.front().offset = operation->object().size_bytes % fop::kBlockBytes;
    }
    const auto planned = operation->work().plan.begin(ranges);
    if (!planned) co_return operation->refuse(refusal_of(planned.error()));
    BlockWriter writer(*operation, operation->work().plan, fid,
                       {.ranges = ranges,
                        .checksums = append.checksums,
                        .memory = append.source ? &*append.source : nullptr,
                        .runs_from_zero = true});
    const auto brought = co_await writer.bring();
    if (!brought) co_return operation->refuse(brought.error());
    if (brought->has_value()) co_return **brought;
    const auto locked = co_await operation->lock_whole(fid);
    if (!locked) co_return operation->refuse(locked.error());
    const auto loaded = operation->load_object(fid, objects::Access::kWrite);
    if (!loaded) co_return operation->refuse(loaded.error());
    const std::uint64_t offset = operation->object().size_bytes;
    if (append.length == 0) {
        co_return fop::Reply{
            .body = fop::AppendReply{.offset = offset, .changed = unchanged(*operation)}};
    }
    if (append.length > fop::kOffsetMax - offset) {
        co_return operation->refuse({fop::Status::kMalformed, "the object would be too long"});
    }
    const auto on_disk = operation->target().check_on_disk();
    if (!on_disk) co_return operation->refuse(on_disk.error());
    const auto serving = operation->check_serving();
    if (!serving) co_return operation->refuse(serving.error());
    if (!append.source) {
        const auto counted =
            count_in_flight(*operation, fid, {.ranges = ranges, .is_append = true});
        if (!counted) co_return operation->refuse(counted.error());
        const auto fits = operation->space().check_beside_uploads(operation->object().pool, fid,
                                                                  count_blocks(ranges));
        if (!fits) co_return operation->refuse(fits.error());
    }
    ranges.front().offset = offset;
    const auto moved = co_await writer.move();
    if (!moved) co_return operation->refuse(moved.error());
    ObjectWrite job(*operation, writer, {.fid = fid, .ranges = ranges, .is_append = true});
    const auto changed = co_await job.run();
    if (!changed) co_return operation->refuse(changed.error());
    co_return fop::Reply{.body = fop::AppendReply{.offset = offset, .changed = *changed}};
}

}  // namespace fopd::reqh
