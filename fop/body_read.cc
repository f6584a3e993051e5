#include <algorithm>
#include <bit>
#include <optional>
#include <type_traits>

#include "fop/body_check.h"
#include "fop/body_wire.h"

namespace fopd::fop {

namespace {

namespace flat = flatbuffers;

// Lists are returned as they are in the message, without a copy.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Range) == sizeof(wire::Range) && alignof(Range) == alignof(wire::Range));
static_assert(sizeof(Fid) == sizeof(wire::Fid) && alignof(Fid) == alignof(wire::Fid));
static_assert(sizeof(Receipt) == sizeof(wire::Receipt) &&
              alignof(Receipt) == alignof(wire::Receipt));

// All functions return false if the data is malformed.

bool read(const flat::String* from, std::string_view& to) {
    to = text_of(from);
    return true;
}
bool read(const flat::Vector<std::uint32_t>* from, List<std::uint32_t>& to) {
    if (from != nullptr) to = List<std::uint32_t>(from->data(), from->size());
    return true;
}
bool read(const flat::Vector<std::uint8_t>* from, List<std::uint8_t>& to) {
    if (from != nullptr) to = List<std::uint8_t>(from->data(), from->size());
    return true;
}
// FlatBuffers does not verify the alignment of lists of structs.
template <typename Wire, typename T>
bool read(const flat::Vector<const Wire*>* from, List<T>& to) {
    if (from == nullptr) return true;
    const std::uint8_t* const first = from->Data();
    if (reinterpret_cast<std::uintptr_t>(first) % alignof(T) != 0) return false;
    to = List<T>(reinterpret_cast<const T*>(first), from->size());
    return true;
}
bool read(const wire::Fid* from, Fid& to) {
    if (from != nullptr) to = {.high = from->high(), .low = from->low()};
    return true;
}
bool read(const wire::Range* from, Range& to) {
    if (from != nullptr) to = {.offset = from->offset(), .length = from->length()};
    return true;
}
bool read(const wire::Receipt* from, Receipt& to) {
    if (from != nullptr) {
        to = {.incarnation = from->incarnation(), .seq = from->seq(), .slot = from->slot()};
    }
    return true;
}
bool read(const flat::Vector<std::uint8_t>* from, SealedDescriptor& to) {
    const auto sealed = bytes_of(from);
    if (sealed.size() != to.size()) return false;
    std::ranges::copy(sealed, to.begin());
    return true;
}
bool read(const flat::Vector<std::uint8_t>* from, std::optional<SealedDescriptor>& to) {
    return from == nullptr || read(from, to.emplace());
}

bool read(const wire::ChangeReply& from, Changed& to) {
    to.version = from.version();
    to.size_bytes = from.size_bytes();
    return read(from.receipt(), to.receipt);
}
bool read(const wire::AttributesReply& from, Attributes& to) {
    to.size_bytes = from.size_bytes();
    to.version = from.version();
    to.created_ns = from.created_ns();
    to.changed_ns = from.changed_ns();
    to.allocated_bytes = from.allocated_bytes();
    to.incarnation = from.incarnation();
    to.mode = from.mode();
    return read(from.fid(), to.fid) && read(from.owner(), to.owner) &&
           read(from.group(), to.group) && read(from.name(), to.name) &&
           read(from.collection(), to.collection);
}

// For a table without fields.
template <typename Wire, typename Body>
bool read(const Wire& /*from*/, Body& /*to*/)
    requires(std::is_empty_v<Body>)
{
    return true;
}
// For replies that contain only the result of a change, or only attributes.
template <typename Body>
bool read(const wire::ChangeReply& from, Body& to)
    requires requires { to.changed; }
{
    return read(from, to.changed);
}
template <typename Body>
bool read(const wire::AttributesReply& from, Body& to)
    requires requires { to.attributes; }
{
    return read(from, to.attributes);
}

bool read(const wire::BulkEchoRequest& from, BulkEcho& to) {
    to.bytes = from.bytes();
    return read(from.source(), to.source) && read(from.target(), to.target);
}
bool read(const wire::CreateObjectRequest& from, Create& to) {
    to.slot = from.slot();
    to.mode = from.mode();
    to.no_replace = from.no_replace();
    return read(from.name(), to.name) && read(from.group(), to.group) &&
           read(from.collection(), to.collection);
}
bool read(const wire::LookupRequest& from, Lookup& to) {
    return read(from.name(), to.name);
}
bool read(const wire::StatRequest& from, Stat& to) {
    return read(from.fid(), to.fid);
}
bool read(const wire::ListRequest& from, ListObjects& to) {
    to.count_max = from.count_max();
    return read(from.prefix(), to.prefix) && read(from.cursor(), to.cursor);
}
bool read(const wire::QuotaRequest& from, Quota& to) {
    to.wanted_bytes = from.wanted_bytes();
    to.wanted_objects = from.wanted_objects();
    return read(from.cursor(), to.cursor);
}
bool read(const wire::SetAttributesRequest& from, SetAttributes& to) {
    to.mode = from.mode();
    to.which = from.which();
    return read(from.fid(), to.fid) && read(from.owner(), to.owner) && read(from.group(), to.group);
}
bool read(const wire::RenameRequest& from, Rename& to) {
    to.no_replace = from.no_replace();
    return read(from.fid(), to.fid) && read(from.from(), to.from) && read(from.name(), to.name);
}
bool read(const wire::DeleteRequest& from, Delete& to) {
    return read(from.fid(), to.fid) && read(from.from(), to.from);
}
bool read(const wire::ReadRequest& from, Read& to) {
    return read(from.fid(), to.fid) && read(from.ranges(), to.ranges) &&
           read(from.target(), to.target);
}
bool read(const wire::WriteRequest& from, Write& to) {
    // check_request() checks the value.
    to.durability = static_cast<Durability>(from.durability());
    to.lost_in = from.lost_in();
    return read(from.fid(), to.fid) && read(from.ranges(), to.ranges) &&
           read(from.checksums(), to.checksums) && read(from.source(), to.source);
}
bool read(const wire::AppendRequest& from, Append& to) {
    to.length = from.length();
    return read(from.fid(), to.fid) && read(from.checksums(), to.checksums) &&
           read(from.source(), to.source);
}
bool read(const wire::TruncateRequest& from, Truncate& to) {
    to.size_bytes = from.size_bytes();
    return read(from.fid(), to.fid);
}
bool read(const wire::PunchRequest& from, Punch& to) {
    return read(from.fid(), to.fid) && read(from.range(), to.range);
}
bool read(const wire::SyncRequest& from, Sync& to) {
    return read(from.receipts(), to.receipts);
}
bool read(const wire::UploadBeginRequest& from, UploadBegin& to) {
    to.size_bytes = from.size_bytes();
    to.slot = from.slot();
    to.mode = from.mode();
    to.no_replace = from.no_replace();
    return read(from.name(), to.name) && read(from.group(), to.group) &&
           read(from.collection(), to.collection);
}
bool read(const wire::UploadWriteRequest& from, UploadWrite& to) {
    return read(from.fid(), to.fid) && read(from.range(), to.range) &&
           read(from.checksums(), to.checksums) && read(from.source(), to.source);
}
bool read(const wire::UploadCommitRequest& from, UploadCommit& to) {
    to.size_bytes = from.size_bytes();
    to.blocks = from.blocks();
    return read(from.fid(), to.fid);
}
bool read(const wire::UploadAbortRequest& from, UploadAbort& to) {
    return read(from.fid(), to.fid);
}

bool read(const wire::StageRequest& from, Stage& to) {
    to.pin_s = from.pin_s();
    to.priority = from.priority();
    to.unpin = from.unpin();
    return read(from.fid(), to.fid);
}
bool read(const wire::ReleaseRequest& from, Release& to) {
    return read(from.fid(), to.fid);
}
bool read(const wire::RecallWaitRequest& from, RecallWait& to) {
    to.patience_ms = from.patience_ms();
    return read(from.fids(), to.fids);
}
bool read(const wire::RecallCancelRequest& from, RecallCancel& to) {
    return read(from.fid(), to.fid);
}
bool read(const wire::CopiesRequest& from, Copies& to) {
    return read(from.fid(), to.fid);
}
bool read(const wire::RecallsRequest& from, Recalls& to) {
    to.formats = from.formats();
    return true;
}
bool read(const wire::MediaRequest& from, Media& to) {
    return read(from.cursor(), to.cursor);
}
bool read(const wire::FormatMediumRequest& from, FormatMedium& to) {
    to.forget_data = from.forget_data();
    to.lose_objects = from.lose_objects();
    return read(from.name(), to.name);
}
bool read(const wire::LoadMediumRequest& from, LoadMedium& to) {
    return read(from.name(), to.name) && read(from.drive(), to.drive);
}
bool read(const wire::UnloadDriveRequest& from, UnloadDrive& to) {
    return read(from.drive(), to.drive);
}
bool read(const wire::SetDriveRequest& from, SetDrive& to) {
    to.down = from.down();
    return read(from.drive(), to.drive);
}
bool read(const wire::ExportMediumRequest& from, ExportMedium& to) {
    to.hide_objects = from.hide_objects();
    return read(from.name(), to.name);
}
bool read(const wire::ImportMediaRequest& from, ImportMedia& to) {
    return read(from.name(), to.name);
}
bool read(const wire::EpochMessageRequest& from, EpochMessage& to) {
    return read(from.from(), to.from) && read(from.message(), to.message);
}
bool read(const wire::MediumWorkRequest& from, MediumWork& to) {
    to.kind = static_cast<MediumWork::Kind>(from.kind());
    to.order = static_cast<MediumWork::Order>(from.order());
    to.first = from.first();
    return read(from.name(), to.name);
}

bool read(const wire::BulkEchoReply& from, BulkEchoReply& to) {
    to.bytes = from.bytes();
    to.crc = from.crc();
    return true;
}
bool read(const wire::SlotsReply& from, SlotsReply& to) {
    to.version = from.version();
    return true;
}
bool read(const wire::StatfsReply& from, StatfsReply& to) {
    to.total_bytes = from.total_bytes();
    to.used_bytes = from.used_bytes();
    to.free_bytes = from.free_bytes();
    to.objects = from.objects();
    return true;
}
bool read(const wire::CreateObjectReply& from, CreateReply& to) {
    to.version = from.version();
    return read(from.fid(), to.fid) && read(from.receipt(), to.receipt);
}
bool read(const wire::ListReply& from, ListObjectsReply& to) {
    to.end = from.end();
    return read(from.cursor(), to.cursor);
}
bool read(const wire::QuotaReply& from, QuotaReply& to) {
    to.end = from.end();
    to.compared = from.compared();
    return read(from.cursor(), to.cursor);
}
bool read(const wire::DeleteReply& from, DeleteReply& to) {
    return read(from.receipt(), to.receipt);
}
bool read(const wire::ReadReply& from, ReadReply& to) {
    to.bytes = from.bytes();
    to.size_bytes = from.size_bytes();
    to.version = from.version();
    to.incarnation = from.incarnation();
    return read(from.checksums(), to.checksums);
}
bool read(const wire::AppendReply& from, AppendReply& to) {
    to.offset = from.offset();
    to.changed.version = from.version();
    to.changed.size_bytes = from.size_bytes();
    return read(from.receipt(), to.changed.receipt);
}
bool read(const wire::SyncReply& from, SyncReply& to) {
    return read(from.receipts(), to.receipts);
}
bool read(const wire::UploadBeginReply& from, UploadBeginReply& to) {
    return read(from.fid(), to.fid);
}
bool read(const wire::UploadWriteReply& from, UploadWriteReply& to) {
    return read(from.receipt(), to.receipt);
}
bool read(const wire::UploadCommitReply& from, UploadCommitReply& to) {
    to.version = from.version();
    return read(from.receipt(), to.receipt);
}

bool read(const wire::StageReply& from, StageReply& to) {
    to.waits = from.waits();
    return true;
}
bool read(const wire::RecallsReply& from, RecallsReply& to) {
    to.total = from.total();
    to.formats = from.formats();
    to.oldest_ms = from.oldest_ms();
    return true;
}
bool read(const wire::RecallWaitReply& from, RecallWaitReply& to) {
    to.place = from.place();
    to.expected_ms = from.expected_ms();
    to.is_damaged = from.is_damaged();
    return read(from.states(), to.states);
}
bool read(const wire::CopiesReply& from, CopiesReply& to) {
    to.total = from.total();
    to.on_disk = from.on_disk();
    to.pinned_until_s = from.pinned_until_s();
    return true;
}
bool read(const wire::MediaReply& from, MediaReply& to) {
    to.end = from.end();
    return read(from.cursor(), to.cursor);
}

bool read(const wire::ExportMediumReply& from, ExportMediumReply& to) {
    to.objects = from.objects();
    to.only_here = from.only_here();
    to.in_exchange = from.in_exchange();
    return true;
}
bool read(const wire::ImportMediaReply& from, ImportMediaReply& to) {
    to.total = from.total();
    return true;
}
bool read(const wire::MediumWorkReply& from, MediumWorkReply& to) {
    to.state = static_cast<MediumWorkReply::State>(from.state());
    to.copies = from.copies();
    to.copy_bytes = from.bytes();
    to.copies_done = from.copies_done();
    to.bytes_done = from.bytes_done();
    to.failures = from.failures();
    to.listed = from.listed();
    to.elapsed_ms = from.elapsed_ms();
    return read(from.reason(), to.reason);
}

// Constructs the variant's body for a table.
template <typename Body, typename Variant, typename Wire>
bool take(const Wire* from, Variant& body) {
    return from != nullptr && read(*from, body.template emplace<Body>());
}

bool read_reply(const wire::Reply& reply, ReplyBody& body) {
    using enum wire::ReplyBody;
    switch (reply.body_type()) {
        case NONE: return true;
        case PingReply: return take<fop::PingReply>(reply.body_as_PingReply(), body);
        case EchoReply: return take<fop::EchoReply>(reply.body_as_EchoReply(), body);
        case BulkEchoReply: return take<fop::BulkEchoReply>(reply.body_as_BulkEchoReply(), body);
        case SlotsReply: return take<fop::SlotsReply>(reply.body_as_SlotsReply(), body);
        case StatfsReply: return take<fop::StatfsReply>(reply.body_as_StatfsReply(), body);
        case CreateObjectReply: return take<CreateReply>(reply.body_as_CreateObjectReply(), body);
        case LookupReply: return take<fop::LookupReply>(reply.body_as_LookupReply(), body);
        case StatReply: return take<fop::StatReply>(reply.body_as_StatReply(), body);
        case ListReply: return take<ListObjectsReply>(reply.body_as_ListReply(), body);
        case SetAttributesReply:
            return take<fop::SetAttributesReply>(reply.body_as_SetAttributesReply(), body);
        case RenameReply: return take<fop::RenameReply>(reply.body_as_RenameReply(), body);
        case DeleteReply: return take<fop::DeleteReply>(reply.body_as_DeleteReply(), body);
        case ReadReply: return take<fop::ReadReply>(reply.body_as_ReadReply(), body);
        case WriteReply: return take<fop::WriteReply>(reply.body_as_WriteReply(), body);
        case AppendReply: return take<fop::AppendReply>(reply.body_as_AppendReply(), body);
        case TruncateReply: return take<fop::TruncateReply>(reply.body_as_TruncateReply(), body);
        case PunchReply: return take<fop::PunchReply>(reply.body_as_PunchReply(), body);
        case SyncReply: return take<fop::SyncReply>(reply.body_as_SyncReply(), body);
        case UploadBeginReply:
            return take<fop::UploadBeginReply>(reply.body_as_UploadBeginReply(), body);
        case UploadWriteReply:
            return take<fop::UploadWriteReply>(reply.body_as_UploadWriteReply(), body);
        case UploadCommitReply:
            return take<fop::UploadCommitReply>(reply.body_as_UploadCommitReply(), body);
        case UploadAbortReply:
            return take<fop::UploadAbortReply>(reply.body_as_UploadAbortReply(), body);
        case QuotaReply: return take<fop::QuotaReply>(reply.body_as_QuotaReply(), body);
        case StageReply: return take<fop::StageReply>(reply.body_as_StageReply(), body);
        case ReleaseReply: return take<fop::ReleaseReply>(reply.body_as_ReleaseReply(), body);
        case RecallsReply: return take<fop::RecallsReply>(reply.body_as_RecallsReply(), body);
        case RecallWaitReply:
            return take<fop::RecallWaitReply>(reply.body_as_RecallWaitReply(), body);
        case RecallCancelReply:
            return take<fop::RecallCancelReply>(reply.body_as_RecallCancelReply(), body);
        case SyncTapeReply: return take<fop::SyncTapeReply>(reply.body_as_SyncTapeReply(), body);
        case CopiesReply: return take<fop::CopiesReply>(reply.body_as_CopiesReply(), body);
        case MediaReply: return take<fop::MediaReply>(reply.body_as_MediaReply(), body);
        case FormatMediumReply:
            return take<fop::FormatMediumReply>(reply.body_as_FormatMediumReply(), body);
        case LoadMediumReply:
            return take<fop::LoadMediumReply>(reply.body_as_LoadMediumReply(), body);
        case UnloadDriveReply:
            return take<fop::UnloadDriveReply>(reply.body_as_UnloadDriveReply(), body);
        case SetDriveReply: return take<fop::SetDriveReply>(reply.body_as_SetDriveReply(), body);
        case MediumWorkReply:
            return take<fop::MediumWorkReply>(reply.body_as_MediumWorkReply(), body);
        case ExportMediumReply:
            return take<fop::ExportMediumReply>(reply.body_as_ExportMediumReply(), body);
        case ImportMediaReply:
            return take<fop::ImportMediaReply>(reply.body_as_ImportMediaReply(), body);
        case EpochMessageReply:
            return take<fop::EpochMessageReply>(reply.body_as_EpochMessageReply(), body);
    }
    return false;
}

}  // namespace

bool read_body(const wire::Request& request, RequestBody& body) {
    using enum wire::RequestBody;
    switch (request.body_type()) {
        case NONE: return true;
        case PingRequest: return take<Ping>(request.body_as_PingRequest(), body);
        case EchoRequest: return take<Echo>(request.body_as_EchoRequest(), body);
        case BulkEchoRequest: return take<BulkEcho>(request.body_as_BulkEchoRequest(), body);
        case SlotsRequest: return take<Slots>(request.body_as_SlotsRequest(), body);
        case StatfsRequest: return take<Statfs>(request.body_as_StatfsRequest(), body);
        case CreateObjectRequest: return take<Create>(request.body_as_CreateObjectRequest(), body);
        case LookupRequest: return take<Lookup>(request.body_as_LookupRequest(), body);
        case StatRequest: return take<Stat>(request.body_as_StatRequest(), body);
        case ListRequest: return take<ListObjects>(request.body_as_ListRequest(), body);
        case SetAttributesRequest:
            return take<SetAttributes>(request.body_as_SetAttributesRequest(), body);
        case RenameRequest: return take<Rename>(request.body_as_RenameRequest(), body);
        case DeleteRequest: return take<Delete>(request.body_as_DeleteRequest(), body);
        case ReadRequest: return take<Read>(request.body_as_ReadRequest(), body);
        case WriteRequest: return take<Write>(request.body_as_WriteRequest(), body);
        case AppendRequest: return take<Append>(request.body_as_AppendRequest(), body);
        case TruncateRequest: return take<Truncate>(request.body_as_TruncateRequest(), body);
        case PunchRequest: return take<Punch>(request.body_as_PunchRequest(), body);
        case SyncRequest: return take<Sync>(request.body_as_SyncRequest(), body);
        case UploadBeginRequest:
            return take<UploadBegin>(request.body_as_UploadBeginRequest(), body);
        case UploadWriteRequest:
            return take<UploadWrite>(request.body_as_UploadWriteRequest(), body);
        case UploadCommitRequest:
            return take<UploadCommit>(request.body_as_UploadCommitRequest(), body);
        case UploadAbortRequest:
            return take<UploadAbort>(request.body_as_UploadAbortRequest(), body);
        case QuotaRequest: return take<Quota>(request.body_as_QuotaRequest(), body);
        case StageRequest: return take<Stage>(request.body_as_StageRequest(), body);
        case ReleaseRequest: return take<Release>(request.body_as_ReleaseRequest(), body);
        case RecallsRequest: return take<Recalls>(request.body_as_RecallsRequest(), body);
        case RecallWaitRequest: return take<RecallWait>(request.body_as_RecallWaitRequest(), body);
        case RecallCancelRequest:
            return take<RecallCancel>(request.body_as_RecallCancelRequest(), body);
        case SyncTapeRequest: return take<SyncTape>(request.body_as_SyncTapeRequest(), body);
        case CopiesRequest: return take<Copies>(request.body_as_CopiesRequest(), body);
        case MediaRequest: return take<Media>(request.body_as_MediaRequest(), body);
        case FormatMediumRequest:
            return take<FormatMedium>(request.body_as_FormatMediumRequest(), body);
        case LoadMediumRequest: return take<LoadMedium>(request.body_as_LoadMediumRequest(), body);
        case UnloadDriveRequest:
            return take<UnloadDrive>(request.body_as_UnloadDriveRequest(), body);
        case SetDriveRequest: return take<SetDrive>(request.body_as_SetDriveRequest(), body);
        case MediumWorkRequest: return take<MediumWork>(request.body_as_MediumWorkRequest(), body);
        case ExportMediumRequest:
            return take<ExportMedium>(request.body_as_ExportMediumRequest(), body);
        case ImportMediaRequest:
            return take<ImportMedia>(request.body_as_ImportMediaRequest(), body);
        case EpochMessageRequest:
            return take<EpochMessage>(request.body_as_EpochMessageRequest(), body);
    }
    return false;
}

ReplyBody read_body(const wire::Reply& reply) {
    ReplyBody body;
    if (!read_reply(reply, body) || !is_bounded(body)) return {};
    return body;
}

}  // namespace fopd::fop
