// Longer than other files: it has a write() and a read() for the body of each fop and each reply.

#include "fop/body_wire.h"

#include <bit>
#include <variant>

#include "fop/body_check.h"
#include "fop/borrowed.h"

namespace fopd::fop {

namespace {

namespace flat = flatbuffers;
using FlatBuilder = flat::FlatBufferBuilder;
using Written = flat::Offset<void>;

// Lists are returned as they are in the message, without a copy.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Range) == sizeof(wire::Range) && alignof(Range) == alignof(wire::Range));
static_assert(sizeof(Receipt) == sizeof(wire::Receipt) &&
              alignof(Receipt) == alignof(wire::Receipt));

// -- writing --

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
    const wire::Fid fid = to_wire(from.fid);
    return wire::CreateAttributesReply(builder, &fid, from.size_bytes, from.version,
                                       from.created_ns, from.changed_ns, from.allocated_bytes,
                                       from.incarnation, owner, group, name, from.mode)
        .Union();
}

// Each returns its table.
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
    return wire::CreateCreateObjectRequest(builder, name, group, create.slot, create.mode,
                                           create.no_replace)
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
    return wire::CreateUploadBeginRequest(builder, name, group, begin.size_bytes, begin.slot,
                                          begin.mode, begin.no_replace)
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
    return wire::CreateQuotaRequest(builder, cursor).Union();
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
    return wire::CreateQuotaReply(builder, cursor, quota.end).Union();
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

// -- reading; the functions return false if the data is malformed --

bool read(const flat::String* from, std::string_view& to) {
    to = text_of(from);
    return true;
}
bool read(const flat::Vector<std::uint32_t>* from, List<std::uint32_t>& to) {
    if (from != nullptr) to = List<std::uint32_t>(from->data(), from->size());
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
           read(from.group(), to.group) && read(from.name(), to.name);
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
    return read(from.name(), to.name) && read(from.group(), to.group);
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
    return read(from.name(), to.name) && read(from.group(), to.group);
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
    }
    return false;
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
    }
    return false;
}

ReplyBody read_body(const wire::Reply& reply) {
    ReplyBody body;
    if (!read_reply(reply, body) || !is_bounded(body)) return {};
    return body;
}

}  // namespace fopd::fop
