#include <optional>
#include <utility>
#include <variant>

#include "fop/body_wire.h"
#include "fop/borrowed.h"

namespace fopd::fop {

namespace {

namespace flat = flatbuffers;
using FlatBuilder = flat::FlatBufferBuilder;
using Written = flat::Offset<void>;

wire::Fid to_wire(const Fid& fid) {
    return {fid.high, fid.low};
}
wire::Range to_wire(const Range& range) {
    return {range.offset, range.length};
}
wire::Receipt to_wire(const Receipt& receipt) {
    return {receipt.incarnation, receipt.seq, receipt.slot};
}

// Copied element by element, so that padding is zero.
template <typename T>
auto list(FlatBuilder& builder, const List<T>& items) {
    using Wire = decltype(to_wire(std::declval<T>()));
    if (items.empty()) return flat::Offset<flat::Vector<const Wire*>>(0);
    Wire* into = nullptr;
    const auto made = builder.CreateUninitializedVectorOfStructs(items.size(), &into);
    for (const T& each : items) *into++ = to_wire(each);
    return flat::Offset<flat::Vector<const Wire*>>(made);
}

flat::Offset<flat::Vector<std::uint32_t>> numbers(FlatBuilder& builder,
                                                  const List<std::uint32_t>& items) {
    if (items.empty()) return 0;
    return builder.CreateVector(items.data(), items.size());
}

flat::Offset<flat::Vector<std::uint8_t>> descriptor(FlatBuilder& builder,
                                                    const std::optional<SealedDescriptor>& sealed) {
    if (!sealed) return 0;
    return wire_bytes(builder, *sealed);
}

Written change(FlatBuilder& builder, const Changed& changed) {
    const wire::Receipt receipt = to_wire(changed.receipt);
    return wire::CreateChangeReply(builder, changed.version, changed.size_bytes, &receipt).Union();
}

Written attributes(FlatBuilder& builder, const Attributes& from) {
    const auto owner = wire_text(builder, from.owner);
    const auto group = wire_text(builder, from.group);
    const auto name = wire_text(builder, from.name);
    const auto collection = wire_text(builder, from.collection);
    const wire::Fid fid = to_wire(from.fid);
    return wire::CreateAttributesReply(builder, &fid, from.size_bytes, from.version,
                                       from.created_ns, from.changed_ns, from.allocated_bytes,
                                       from.incarnation, owner, group, name, from.mode, collection)
        .Union();
}

// Each function writes a body and returns its table.
Written write(FlatBuilder&, const std::monostate&) {
    return 0;
}
Written write(FlatBuilder& builder, const Ping&) {
    return wire::CreatePingRequest(builder).Union();
}
Written write(FlatBuilder& builder, const Echo&) {
    return wire::CreateEchoRequest(builder).Union();
}
Written write(FlatBuilder& builder, const BulkEcho& bulk) {
    const auto source = wire_bytes(builder, bulk.source);
    const auto target = wire_bytes(builder, bulk.target);
    return wire::CreateBulkEchoRequest(builder, source, target, bulk.bytes).Union();
}
Written write(FlatBuilder& builder, const Slots&) {
    return wire::CreateSlotsRequest(builder).Union();
}
Written write(FlatBuilder& builder, const Statfs&) {
    return wire::CreateStatfsRequest(builder).Union();
}
Written write(FlatBuilder& builder, const Create& create) {
    const auto name = wire_text(builder, create.name);
    const auto group = wire_text(builder, create.group);
    const auto collection = wire_text(builder, create.collection);
    return wire::CreateCreateObjectRequest(builder, name, group, create.slot, create.mode,
                                           create.no_replace, collection)
        .Union();
}
Written write(FlatBuilder& builder, const Lookup& lookup) {
    const auto name = wire_text(builder, lookup.name);
    return wire::CreateLookupRequest(builder, name).Union();
}
Written write(FlatBuilder& builder, const Stat& stat) {
    const wire::Fid fid = to_wire(stat.fid);
    return wire::CreateStatRequest(builder, &fid).Union();
}
Written write(FlatBuilder& builder, const ListObjects& list) {
    const auto prefix = wire_text(builder, list.prefix);
    const auto cursor = wire_text(builder, list.cursor);
    return wire::CreateListRequest(builder, prefix, cursor, list.count_max).Union();
}
Written write(FlatBuilder& builder, const SetAttributes& set) {
    const auto owner = wire_text(builder, set.owner);
    const auto group = wire_text(builder, set.group);
    const wire::Fid fid = to_wire(set.fid);
    return wire::CreateSetAttributesRequest(builder, &fid, owner, group, set.mode, set.which)
        .Union();
}
Written write(FlatBuilder& builder, const Rename& rename) {
    const auto from = wire_text(builder, rename.from);
    const auto name = wire_text(builder, rename.name);
    const wire::Fid fid = to_wire(rename.fid);
    return wire::CreateRenameRequest(builder, &fid, from, name, rename.no_replace).Union();
}
Written write(FlatBuilder& builder, const Delete& deletion) {
    const auto from = wire_text(builder, deletion.from);
    const wire::Fid fid = to_wire(deletion.fid);
    return wire::CreateDeleteRequest(builder, &fid, from).Union();
}
Written write(FlatBuilder& builder, const Read& read) {
    const auto ranges = list(builder, read.ranges);
    const auto target = descriptor(builder, read.target);
    const wire::Fid fid = to_wire(read.fid);
    return wire::CreateReadRequest(builder, &fid, ranges, target).Union();
}
Written write(FlatBuilder& builder, const Write& write) {
    const auto ranges = list(builder, write.ranges);
    const auto checksums = numbers(builder, write.checksums);
    const auto source = descriptor(builder, write.source);
    const wire::Fid fid = to_wire(write.fid);
    return wire::CreateWriteRequest(builder, &fid, ranges, checksums, source,
                                    static_cast<std::uint8_t>(write.durability), write.lost_in)
        .Union();
}
Written write(FlatBuilder& builder, const Append& append) {
    const auto checksums = numbers(builder, append.checksums);
    const auto source = descriptor(builder, append.source);
    const wire::Fid fid = to_wire(append.fid);
    return wire::CreateAppendRequest(builder, &fid, append.length, checksums, source).Union();
}
Written write(FlatBuilder& builder, const Truncate& truncate) {
    const wire::Fid fid = to_wire(truncate.fid);
    return wire::CreateTruncateRequest(builder, &fid, truncate.size_bytes).Union();
}
Written write(FlatBuilder& builder, const Punch& punch) {
    const wire::Fid fid = to_wire(punch.fid);
    const wire::Range range = to_wire(punch.range);
    return wire::CreatePunchRequest(builder, &fid, &range).Union();
}
Written write(FlatBuilder& builder, const Sync& sync) {
    const auto receipts = list(builder, sync.receipts);
    return wire::CreateSyncRequest(builder, receipts).Union();
}
Written write(FlatBuilder& builder, const UploadBegin& begin) {
    const auto name = wire_text(builder, begin.name);
    const auto group = wire_text(builder, begin.group);
    const auto collection = wire_text(builder, begin.collection);
    return wire::CreateUploadBeginRequest(builder, name, group, begin.size_bytes, begin.slot,
                                          begin.mode, begin.no_replace, collection)
        .Union();
}
Written write(FlatBuilder& builder, const UploadWrite& write) {
    const auto checksums = numbers(builder, write.checksums);
    const auto source = descriptor(builder, write.source);
    const wire::Fid fid = to_wire(write.fid);
    const wire::Range range = to_wire(write.range);
    return wire::CreateUploadWriteRequest(builder, &fid, &range, checksums, source).Union();
}
Written write(FlatBuilder& builder, const UploadCommit& commit) {
    const wire::Fid fid = to_wire(commit.fid);
    return wire::CreateUploadCommitRequest(builder, &fid, commit.size_bytes, commit.blocks).Union();
}
Written write(FlatBuilder& builder, const UploadAbort& abort) {
    const wire::Fid fid = to_wire(abort.fid);
    return wire::CreateUploadAbortRequest(builder, &fid).Union();
}

Written write(FlatBuilder& builder, const Quota& quota) {
    const auto cursor = wire_text(builder, quota.cursor);
    return wire::CreateQuotaRequest(builder, cursor, quota.wanted_bytes, quota.wanted_objects)
        .Union();
}

Written write(FlatBuilder& builder, const Stage& stage) {
    const wire::Fid fid = to_wire(stage.fid);
    return wire::CreateStageRequest(builder, &fid, stage.pin_s, stage.priority, stage.unpin)
        .Union();
}
Written write(FlatBuilder& builder, const Release& release) {
    const wire::Fid fid = to_wire(release.fid);
    return wire::CreateReleaseRequest(builder, &fid).Union();
}
Written write(FlatBuilder& builder, const Recalls& recalls) {
    return wire::CreateRecallsRequest(builder, recalls.formats).Union();
}
Written write(FlatBuilder& builder, const Copies& copies) {
    const wire::Fid fid = to_wire(copies.fid);
    return wire::CreateCopiesRequest(builder, &fid).Union();
}
Written write(FlatBuilder& builder, const RecallWait& wait) {
    const auto fids = list(builder, wait.fids);
    return wire::CreateRecallWaitRequest(builder, fids, wait.patience_ms).Union();
}
Written write(FlatBuilder& builder, const RecallCancel& cancel) {
    const wire::Fid fid = to_wire(cancel.fid);
    return wire::CreateRecallCancelRequest(builder, &fid).Union();
}
Written write(FlatBuilder& builder, const SyncTape&) {
    return wire::CreateSyncTapeRequest(builder).Union();
}
Written write(FlatBuilder& builder, const Media& media) {
    const auto cursor = wire_text(builder, media.cursor);
    return wire::CreateMediaRequest(builder, cursor).Union();
}
Written write(FlatBuilder& builder, const FormatMedium& format) {
    const auto name = wire_text(builder, format.name);
    return wire::CreateFormatMediumRequest(builder, name, format.forget_data, format.lose_objects)
        .Union();
}
Written write(FlatBuilder& builder, const LoadMedium& load) {
    const auto name = wire_text(builder, load.name);
    const auto drive = wire_text(builder, load.drive);
    return wire::CreateLoadMediumRequest(builder, name, drive).Union();
}
Written write(FlatBuilder& builder, const UnloadDrive& unload) {
    const auto drive = wire_text(builder, unload.drive);
    return wire::CreateUnloadDriveRequest(builder, drive).Union();
}
Written write(FlatBuilder& builder, const SetDrive& set) {
    const auto drive = wire_text(builder, set.drive);
    return wire::CreateSetDriveRequest(builder, drive, set.down).Union();
}
Written write(FlatBuilder& builder, const ExportMedium& wish) {
    const auto name = wire_text(builder, wish.name);
    return wire::CreateExportMediumRequest(builder, name, wish.hide_objects).Union();
}
Written write(FlatBuilder& builder, const ImportMedia& wish) {
    const auto name = wire_text(builder, wish.name);
    return wire::CreateImportMediaRequest(builder, name).Union();
}
Written write(FlatBuilder& builder, const EpochMessage& body) {
    const auto from = wire_text(builder, body.from);
    const auto message = wire_bytes(builder, bytes_of_borrowed(body.message));
    return wire::CreateEpochMessageRequest(builder, from, message).Union();
}
Written write(FlatBuilder& builder, const MediumWork& work) {
    const auto name = wire_text(builder, work.name);
    return wire::CreateMediumWorkRequest(builder, name, static_cast<std::uint8_t>(work.kind),
                                         static_cast<std::uint8_t>(work.order), work.first)
        .Union();
}

Written write(FlatBuilder& builder, const PingReply&) {
    return wire::CreatePingReply(builder).Union();
}
Written write(FlatBuilder& builder, const EchoReply&) {
    return wire::CreateEchoReply(builder).Union();
}
Written write(FlatBuilder& builder, const BulkEchoReply& bulk) {
    return wire::CreateBulkEchoReply(builder, bulk.bytes, bulk.crc).Union();
}
Written write(FlatBuilder& builder, const SlotsReply& slots) {
    return wire::CreateSlotsReply(builder, slots.version).Union();
}
Written write(FlatBuilder& builder, const StatfsReply& statfs) {
    return wire::CreateStatfsReply(builder, statfs.total_bytes, statfs.used_bytes,
                                   statfs.free_bytes, statfs.objects)
        .Union();
}
Written write(FlatBuilder& builder, const CreateReply& create) {
    const wire::Fid fid = to_wire(create.fid);
    const wire::Receipt receipt = to_wire(create.receipt);
    return wire::CreateCreateObjectReply(builder, &fid, create.version, &receipt).Union();
}
Written write(FlatBuilder& builder, const LookupReply& lookup) {
    return attributes(builder, lookup.attributes);
}
Written write(FlatBuilder& builder, const StatReply& stat) {
    return attributes(builder, stat.attributes);
}
Written write(FlatBuilder& builder, const ListObjectsReply& list) {
    const auto cursor = wire_text(builder, list.cursor);
    return wire::CreateListReply(builder, cursor, list.end).Union();
}
Written write(FlatBuilder& builder, const SetAttributesReply& set) {
    return change(builder, set.changed);
}
Written write(FlatBuilder& builder, const RenameReply& rename) {
    return change(builder, rename.changed);
}
Written write(FlatBuilder& builder, const DeleteReply& deletion) {
    const wire::Receipt receipt = to_wire(deletion.receipt);
    return wire::CreateDeleteReply(builder, &receipt).Union();
}
Written write(FlatBuilder& builder, const ReadReply& read) {
    const auto checksums = numbers(builder, read.checksums);
    return wire::CreateReadReply(builder, read.bytes, read.size_bytes, read.version,
                                 read.incarnation, checksums)
        .Union();
}
Written write(FlatBuilder& builder, const WriteReply& write) {
    return change(builder, write.changed);
}
Written write(FlatBuilder& builder, const AppendReply& append) {
    const wire::Receipt receipt = to_wire(append.changed.receipt);
    return wire::CreateAppendReply(builder, append.offset, append.changed.version,
                                   append.changed.size_bytes, &receipt)
        .Union();
}
Written write(FlatBuilder& builder, const TruncateReply& truncate) {
    return change(builder, truncate.changed);
}
Written write(FlatBuilder& builder, const PunchReply& punch) {
    return change(builder, punch.changed);
}
Written write(FlatBuilder& builder, const SyncReply& sync) {
    const auto receipts = list(builder, sync.receipts);
    return wire::CreateSyncReply(builder, receipts).Union();
}
Written write(FlatBuilder& builder, const UploadBeginReply& begin) {
    const wire::Fid fid = to_wire(begin.fid);
    return wire::CreateUploadBeginReply(builder, &fid).Union();
}
Written write(FlatBuilder& builder, const UploadWriteReply& write) {
    const wire::Receipt receipt = to_wire(write.receipt);
    return wire::CreateUploadWriteReply(builder, &receipt).Union();
}
Written write(FlatBuilder& builder, const UploadCommitReply& commit) {
    const wire::Receipt receipt = to_wire(commit.receipt);
    return wire::CreateUploadCommitReply(builder, commit.version, &receipt).Union();
}
Written write(FlatBuilder& builder, const UploadAbortReply&) {
    return wire::CreateUploadAbortReply(builder).Union();
}
Written write(FlatBuilder& builder, const QuotaReply& quota) {
    const auto cursor = wire_text(builder, quota.cursor);
    return wire::CreateQuotaReply(builder, cursor, quota.end, quota.compared).Union();
}

Written write(FlatBuilder& builder, const StageReply& stage) {
    return wire::CreateStageReply(builder, stage.waits).Union();
}
Written write(FlatBuilder& builder, const ReleaseReply&) {
    return wire::CreateReleaseReply(builder).Union();
}
Written write(FlatBuilder& builder, const RecallsReply& recalls) {
    return wire::CreateRecallsReply(builder, recalls.total, recalls.formats, recalls.oldest_ms)
        .Union();
}
Written write(FlatBuilder& builder, const CopiesReply& copies) {
    return wire::CreateCopiesReply(builder, copies.total, copies.on_disk, copies.pinned_until_s)
        .Union();
}
Written write(FlatBuilder& builder, const RecallWaitReply& wait) {
    const auto states = wire_bytes(builder, bytes_of_borrowed(wait.states));
    return wire::CreateRecallWaitReply(builder, states, wait.place, wait.expected_ms,
                                       wait.is_damaged)
        .Union();
}
Written write(FlatBuilder& builder, const RecallCancelReply&) {
    return wire::CreateRecallCancelReply(builder).Union();
}
Written write(FlatBuilder& builder, const SyncTapeReply&) {
    return wire::CreateSyncTapeReply(builder).Union();
}
Written write(FlatBuilder& builder, const MediaReply& media) {
    const auto cursor = wire_text(builder, media.cursor);
    return wire::CreateMediaReply(builder, cursor, media.end).Union();
}
Written write(FlatBuilder& builder, const FormatMediumReply&) {
    return wire::CreateFormatMediumReply(builder).Union();
}
Written write(FlatBuilder& builder, const LoadMediumReply&) {
    return wire::CreateLoadMediumReply(builder).Union();
}
Written write(FlatBuilder& builder, const UnloadDriveReply&) {
    return wire::CreateUnloadDriveReply(builder).Union();
}
Written write(FlatBuilder& builder, const SetDriveReply&) {
    return wire::CreateSetDriveReply(builder).Union();
}
Written write(FlatBuilder& builder, const ExportMediumReply& done) {
    return wire::CreateExportMediumReply(builder, done.objects, done.only_here, done.in_exchange)
        .Union();
}
Written write(FlatBuilder& builder, const EpochMessageReply& /*body*/) {
    return wire::CreateEpochMessageReply(builder).Union();
}
Written write(FlatBuilder& builder, const ImportMediaReply& done) {
    return wire::CreateImportMediaReply(builder, done.total).Union();
}
Written write(FlatBuilder& builder, const MediumWorkReply& work) {
    const auto reason = wire_text(builder, work.reason);
    return wire::CreateMediumWorkReply(builder, static_cast<std::uint8_t>(work.state), work.copies,
                                       work.copy_bytes, work.copies_done, work.bytes_done,
                                       work.failures, work.listed, work.elapsed_ms, reason)
        .Union();
}

template <typename Variant>
std::size_t borrowed_max(const Variant& body) {
    std::size_t total = 0;
    auto add = [&total](const auto& part) {
        total += list_bytes_max(bytes_of_borrowed(part).size());
    };
    std::visit([&add](const auto& each) { for_each_borrowed(each, add); }, body);
    return total;
}

}  // namespace

std::size_t borrowed_wire_bytes_max(const RequestBody& body) {
    return borrowed_max(body);
}
std::size_t borrowed_wire_bytes_max(const ReplyBody& body) {
    return borrowed_max(body);
}

flat::Offset<void> write_body(FlatBuilder& builder, const RequestBody& body) {
    return std::visit([&builder](const auto& each) { return write(builder, each); }, body);
}
flat::Offset<void> write_body(FlatBuilder& builder, const ReplyBody& body) {
    return std::visit([&builder](const auto& each) { return write(builder, each); }, body);
}

}  // namespace fopd::fop
