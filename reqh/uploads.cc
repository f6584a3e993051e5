#include <algorithm>
#include <array>
#include <utility>

#include "core/crc32c.h"
#include "objects/block_io.h"
#include "objects/fids.h"
#include "reqh/attributes.h"
#include "reqh/block_writer.h"
#include "reqh/caller.h"
#include "reqh/name_fops.h"
#include "reqh/object_fops.h"
#include "reqh/operation.h"

namespace fopd::reqh {

namespace {

// Locks the upload, or a part of it, if the caller may write to it.
Task<Granted<>> lock_upload(Operation* operation, objects::LockRequest needed) {
    const auto locked = co_await operation->lock(needed);
    if (!locked) co_return locked;
    const auto loaded = operation->load_upload(needed.fid);
    if (!loaded) co_return loaded;
    co_return operation->check_serving();
}

}  // namespace

Task<fop::Reply> run_upload_begin(Operation* operation) {
    const auto& begin = operation->body<fop::UploadBegin>();
    const auto pool = operation->check_takes_new();
    if (!pool) co_return operation->refuse(pool.error());
    const auto group = group_for(*operation, *pool, begin.group);
    if (!group) co_return operation->refuse(group.error());
    if (begin.no_replace && !begin.name.empty()) {
        // An early check only: the commit decides.
        const objects::ObjectName name{.pool = *pool, .name = begin.name};
        auto finding = operation->stores().parts().names.find(name);
        const auto found = co_await operation->elsewhere(std::move(finding));
        if (!found) co_return operation->refuse(untraced(found.error()));
        if (found->has_value()) {
            co_return operation->refuse(
                {.status = fop::Status::kExists, .words = "the name is taken"});
        }
        const auto known = operation->layout().check_names_known(*pool);
        if (!known) co_return operation->refuse(known.error());
    }
    operation->enter(Phase::kAuthorise);
    const objects::PoolOwner owner{.pool = *pool, .owner = acting_user(operation->caller())};
    const auto charged = operation->space().charge(owner, {.objects = 1});
    if (!charged) co_return operation->refuse(charged.error());
    // Checked before the bytes are sent, while the client can still try another disk.
    const std::uint64_t blocks = (begin.size_bytes + objects::kBlock - 1) / objects::kBlock;
    const auto within_quota = operation->space().check_quota(owner, {.blocks = blocks});
    if (!within_quota) co_return operation->refuse(within_quota.error());
    const store::Fid fid = operation->home().make_fid();
    const auto fits = operation->space().begin_upload(owner, fid, blocks);
    if (!fits) co_return operation->refuse(fits.error());
    auto room =
        co_await operation->reserve(store::kPutRecordBytesMax + objects::kReplyRecordBytesMax);
    if (!room) {
        operation->home().uploads().gone(fid);
        co_return operation->refuse(room.error());
    }

    const WallTime now = operation->wall();
    operation->change().put_upload(
        fid, {.object = {.size_bytes = begin.size_bytes,
                         .created = now,
                         .changed = now,
                         .pool = *pool,
                         .mode = begin.mode,
                         .owner = owner.owner,
                         .group = *group,
                         .name = begin.name,
                         .collection = begin.collection},
              .rule = begin.no_replace ? store::NameRule::kNoReplace : store::NameRule::kReplace});
    operation->put_reply({.type = operation->request().type, .fid = fid});
    const auto receipt = co_await operation->commit_durable(std::move(*room));
    if (!receipt) {
        operation->home().uploads().gone(fid);
        co_return operation->refuse(receipt.error());
    }
    co_return fop::Reply{.body = fop::UploadBeginReply{.fid = objects::fop_fid(fid)}};
}

// -- write --

namespace {

// REQUIRES: the upload is loaded.
ChangeSpace::UploadPart part_of_upload(const Operation& operation, store::Fid fid,
                                       store::BlockRange range) {
    const store::Object& upload = operation.object();
    return {.pool = upload.pool,
            .owner = &operation.home().use().owner(objects::owner_of(upload)),
            .fid = fid,
            .size_bytes = upload.size_bytes,
            .range = range,
            .blocks = range.count};
}

// Whether the caller may write to the upload, checked before its bytes are pulled. The room for
// them is the write's from then on. The upload does not go before that is known.
Task<Granted<>> check_upload_before_pull(Operation* operation, store::Fid fid,
                                         store::BlockRange blocks) {
    auto allowed = co_await lock_upload(operation, {.fid = fid, .range = objects::kAttributes});
    if (allowed) {
        const auto part = part_of_upload(*operation, fid, blocks);
        allowed = co_await operation->space().begin_upload_write(part);
    }
    operation->unlock();
    co_return allowed;
}

// REQUIRES: the upload is loaded, and its blocks are locked.
Task<Granted<fop::Receipt>> write_upload(Operation* operation, BlockWriter* writer) {
    const auto written = co_await writer->write_chunks();
    if (!written) co_return refused(written.error());
    auto room = co_await operation->reserve(objects::kReplyRecordBytesMax);
    if (!room) co_return refused(room.error());
    operation->put_reply({.type = operation->request().type});
    const store::Data data =
        writer->start_last_writes() ? store::Data::kPending : store::Data::kNone;
    const auto begun =
        operation->begin_change(std::move(*room), store::Durability::kBuffered, data);
    if (!begun) {
        [[maybe_unused]] const auto ended = co_await operation->io().wait();
        co_return refused(begun.error());
    }
    operation->space().upload_write_begun();
    co_return co_await operation->finish_change(data);
}

}  // namespace

Task<fop::Reply> run_upload_write(Operation* operation) {
    const auto& write = operation->body<fop::UploadWrite>();
    const store::Fid fid = objects::store_fid(write.fid);
    const std::array ranges{write.range};
    const store::BlockRange blocks = blocks_of(ranges);
    const bool is_empty = blocks.count == 0;
    const auto planned = operation->work().plan.begin(ranges);
    if (!planned) co_return operation->refuse(refusal_of(planned.error()));
    if (write.source && !is_empty) {
        const auto allowed = co_await check_upload_before_pull(operation, fid, blocks);
        if (!allowed) co_return operation->refuse(allowed.error());
    }
    BlockWriter writer(*operation, operation->work().plan, fid,
                       {.ranges = ranges,
                        .checksums = write.checksums,
                        .memory = write.source ? &*write.source : nullptr});
    const auto brought = co_await writer.bring();
    if (!brought) co_return operation->refuse(brought.error());
    if (brought->has_value()) co_return **brought;
    const auto locked = co_await lock_upload(operation, lock_for_write(fid, blocks));
    if (!locked) co_return operation->refuse(locked.error());
    operation->home().uploads().written(fid, operation->reactor().now());
    if (is_empty) {
        co_return fop::Reply{.body =
                                 fop::UploadWriteReply{.receipt = operation->durable_receipt()}};
    }
    if (!write.source) {
        const auto part = part_of_upload(*operation, fid, blocks);
        const auto goes_on = co_await operation->space().begin_upload_write(part);
        if (!goes_on) co_return operation->refuse(goes_on.error());
    }
    const auto receipt = co_await write_upload(operation, &writer);
    if (!receipt) co_return operation->refuse(receipt.error());
    co_return fop::Reply{.body = fop::UploadWriteReply{.receipt = *receipt}};
}

// -- commit --

namespace {

// Checks that there is nothing after the end except zeros in the last block, as in every object.
Task<Granted<>> check_end(Operation* operation, const fop::UploadCommit* commit) {
    constexpr const char* kTooMuch = "bytes were written beyond the size";
    const store::Fid fid = objects::store_fid(commit->fid);
    store::ObjectMap& map = operation->volume().map();
    const std::uint64_t end = (commit->size_bytes + objects::kBlock - 1) / objects::kBlock;
    if (end < store::kObjectBlocksMax) {
        const auto behind =
            map.count(fid, {.first = end, .count = store::kObjectBlocksMax - end}, 1);
        if (!behind) co_return refused(behind.error());
        if (behind->blocks > 0) {
            co_return refused(fop::Status::kMalformed, kTooMuch);
        }
    }
    const std::uint64_t used = commit->size_bytes % objects::kBlock;
    if (used == 0) co_return Granted<>{};
    auto extents = map.extents(fid, {.first = end - 1, .count = 1});
    const auto last = extents.next();
    if (!last) co_return refused(last.error());
    if (!last->has_value()) co_return Granted<>{};
    const std::uint32_t expected = (*last)->checksums.front();
    const core::Buffer& buffer = operation->buffer();
    operation->io().read(
        {.data = buffer.data, .size_bytes = objects::kBlock, .region = buffer.region},
        (*last)->block, operation->wait());
    const auto read = co_await operation->io().wait();
    if (!read) co_return refused(untraced(read.error()));
    const auto bytes = buffer.span().first(objects::kBlock);
    if (core::crc32c(bytes) != expected) co_return refused(operation->corrupt(fid, end - 1));
    const bool is_clean = std::ranges::all_of(bytes.subspan(used),
                                              [](std::byte each) { return each == std::byte{0}; });
    if (!is_clean) co_return refused(fop::Status::kMalformed, kTooMuch);
    co_return Granted<>{};
}

// An upload's name never changes, so it can be held before the upload is locked.
Task<Granted<>> hold_name_of_upload(Operation* operation, store::Fid fid) {
    const auto locked = co_await operation->lock_to_look(fid);
    if (!locked) co_return locked;
    const auto certain = operation->check_certain(fid);
    if (!certain) co_return certain;
    const auto found = operation->volume().map().find_upload(fid);
    operation->unlock();
    if (!found) co_return refused(found.error());
    if (!found->has_value()) {
        co_return refused(fop::Status::kNotFound, "there is no such upload");
    }
    const store::Upload& upload = **found;
    const bool no_replace = upload.rule == store::NameRule::kNoReplace;
    operation->work().text = upload.object.name;
    if (operation->work().text.empty()) co_return Granted<>{};
    const NewName name{.name = {.pool = upload.object.pool, .name = operation->work().text},
                       .no_replace = no_replace};
    co_return co_await hold_for_new_object(operation, name);
}

Task<Granted<fop::UploadCommitReply>> commit_upload(Operation* operation,
                                                    const fop::UploadCommit* commit) {
    const store::Fid fid = objects::store_fid(commit->fid);
    auto room =
        co_await operation->reserve(store::kPutRecordBytesMax + objects::kReplyRecordBytesMax);
    if (!room) co_return refused(room.error());
    store::Object object = operation->object();
    object.size_bytes = commit->size_bytes;
    object.version = 1;
    object.changed = operation->wall();
    object.last_writer = operation->last_writer({});
    object.name_version = object.name.empty() ? 0 : operation->names().at(0).version;
    operation->change().put_commit(fid, object);
    operation->change().will_come(fid, object.pool);
    operation->put_reply({.type = operation->request().type, .version = object.version});
    const auto receipt = co_await operation->commit_durable(std::move(*room));
    if (!receipt) co_return refused(receipt.error());
    operation->home().uploads().gone(fid);
    co_return fop::UploadCommitReply{.version = object.version, .receipt = *receipt};
}

}  // namespace

Task<fop::Reply> run_upload_commit(Operation* operation) {
    const auto& commit = operation->body<fop::UploadCommit>();
    const store::Fid fid = objects::store_fid(commit.fid);
    const auto held = co_await hold_name_of_upload(operation, fid);
    if (!held) co_return operation->refuse(held.error());
    const objects::LockRequest whole{
        .fid = fid, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive};
    const auto locked = co_await lock_upload(operation, whole);
    if (!locked) co_return operation->refuse(locked.error());
    operation->enter(Phase::kFetch);
    const auto blocks = co_await count_blocks(operation, fid);
    if (!blocks) co_return operation->refuse(blocks.error());
    if (*blocks < commit.blocks) {
        co_return fop::Reply{
            .status = fop::Status::kLost,
            .words = "some of the uploaded blocks are lost; upload it again",
            .body = fop::UploadCommitReply{.receipt = operation->durable_receipt()}};
    }
    if (*blocks > commit.blocks) {
        co_return operation->refuse({.status = fop::Status::kMalformed,
                                     .words = "more bytes were uploaded than the given size"});
    }
    const auto ended = co_await check_end(operation, &commit);
    if (!ended) co_return operation->refuse(ended.error());
    const auto committed = co_await commit_upload(operation, &commit);
    if (!committed) co_return operation->refuse(committed.error());
    co_return fop::Reply{.body = *committed};
}

// -- abort --

Task<fop::Reply> run_upload_abort(Operation* operation) {
    const store::Fid fid = objects::store_fid(operation->body<fop::UploadAbort>().fid);
    const objects::LockRequest whole{
        .fid = fid, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive};
    const auto locked = co_await lock_upload(operation, whole);
    // A repeated abort succeeds.
    const bool has_gone = !locked && locked.error().status == fop::Status::kNotFound;
    if (has_gone) co_return fop::Reply{.body = fop::UploadAbortReply{}};
    if (!locked) co_return operation->refuse(locked.error());
    const auto blocks = co_await count_blocks(operation, fid);
    if (!blocks) co_return operation->refuse(blocks.error());
    operation->change().will_free(objects::owner_of(operation->object()),
                                  {.blocks = *blocks, .objects = 1});
    auto room = co_await operation->reserve(store::kRemoveRecordBytes, store::Purpose::kFreeing);
    if (!room) co_return operation->refuse(room.error());
    operation->change().remove(fid);
    const auto receipt = co_await operation->commit_durable(std::move(*room));
    if (!receipt) co_return operation->refuse(receipt.error());
    operation->home().uploads().gone(fid);
    co_return fop::Reply{.body = fop::UploadAbortReply{}};
}

}  // namespace fopd::reqh
