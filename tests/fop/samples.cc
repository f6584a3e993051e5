#include "tests/fop/samples.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "core/ensure.h"
#include "fop/fop_type.h"
#include "fop/listing.h"
#include "fop/message_writer.h"
#include "fop/prefix.h"

namespace fopd::fop {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

SealedDescriptor descriptor(unsigned first) {
    SealedDescriptor sealed;
    for (std::size_t i = 0; i < sealed.size(); ++i) sealed[i] = static_cast<std::byte>(first + i);
    return sealed;
}

constexpr Fid kFid{.high = 0x0007'0000'0000'0001, .low = 0x1122334455667788};
constexpr Receipt kReceipt{.incarnation = 3, .seq = 0x1234, .slot = 7};
constexpr Changed kChanged{.version = 9, .size_bytes = 8195, .receipt = kReceipt};
constexpr Attributes kAttributes{.fid = kFid,
                                 .size_bytes = 8195,
                                 .version = 9,
                                 .created_ns = 1'700'000'000'000'000'000,
                                 .changed_ns = 1'700'000'001'000'000'000,
                                 .allocated_bytes = 12288,
                                 .incarnation = 3,
                                 .owner = "ada",
                                 .group = "staff",
                                 .name = "results/42",
                                 .mode = 0640,
                                 .collection = "run-7"};
// Five bytes over the end of a block, and two within one: three runs.
constexpr std::array<Range, 2> kRanges{Range{.offset = 4094, .length = 5},
                                       Range{.offset = 100, .length = 2}};
constexpr std::array<std::uint32_t, 3> kChecksums{0xaaaaaaaa, 0xbbbbbbbb, 0xcccccccc};
constexpr std::array<Receipt, 2> kReceipts{kReceipt,
                                           Receipt{.incarnation = 4, .seq = 5, .slot = 8}};

constexpr std::array<Fid, 2> kTickets{kFid, Fid{.high = 0x0008'0000'0000'0001, .low = 2}};
constexpr std::array<std::uint8_t, 2> kRecallStates{
    static_cast<std::uint8_t>(RecallState::kDone),
    static_cast<std::uint8_t>(RecallState::kWaiting)};

std::vector<std::byte> listing_of(const auto&... entries) {
    std::vector<std::byte> payload(256);
    ListingWriter writer(payload);
    const bool added = (writer.add(entries) && ...);
    ENSURE(added);
    payload.resize(writer.written().size());
    return payload;
}

const std::vector<std::byte>& slots_listing() {
    static const auto kMade = listing_of(
        ListedSlot{
            .slot = 7, .locality = 1, .in_default_pool = true, .free_bytes = 4096, .pool = "fast"},
        ListedSlot{.slot = 8, .state = ListedSlotState::kMissing, .pool = "slow"});
    return kMade;
}

const std::vector<std::byte>& pools_listing() {
    static const auto kMade = listing_of(PoolEntry{.total_bytes = 1U << 30,
                                                   .used_bytes = 12288,
                                                   .free_bytes = 1U << 29,
                                                   .objects = 1,
                                                   .pool = "fast"});
    return kMade;
}

const std::vector<std::byte>& quotas_listing() {
    static const auto kMade = listing_of(QuotaEntry{.used_bytes = 12288,
                                                    .limit_bytes = 1U << 30,
                                                    .used_objects = 1,
                                                    .whose = QuotaEntry::Whose::kPool,
                                                    .pool = "fast"},
                                         QuotaEntry{.used_bytes = 12288,
                                                    .used_objects = 1,
                                                    .limit_objects = 9,
                                                    .pool = "fast",
                                                    .owner = "ada"});
    return kMade;
}

const std::vector<std::byte>& recalls_listing() {
    static const auto kMade = listing_of(
        RecallEntry{.fid = kFid,
                    .size_bytes = 8195,
                    .place = 1,
                    .asked_ms = 17,
                    .expected_ms = 90'000,
                    .state = RecallEntry::State::kReading,
                    .priority = 128,
                    .cartridge = "A00001L9",
                    .name = "results/42",
                    .requester = "ada"},
        RecallEntry{.fid = {.high = 1, .low = 2}, .state = RecallEntry::State::kWaiting});
    return kMade;
}

const std::vector<std::byte>& media_listing() {
    static const auto kMade = listing_of(MediumEntry{.capacity_bytes = 18'000'000'000'000,
                                                     .used_bytes = 1U << 30,
                                                     .dead_bytes = 8195,
                                                     .files = 4,
                                                     .mounts = 2,
                                                     .generation = 1,
                                                     .scrubbed_s = 1'800'000'000,
                                                     .damaged_copies = 2,
                                                     .live_bytes = 1U << 29,
                                                     .failures = 3,
                                                     .barcode = "A00001L9",
                                                     .pool = "cold",
                                                     .technology = "lto9",
                                                     .state = "ok",
                                                     .drive = "vtl0-drive0",
                                                     .reason = ""});
    return kMade;
}

const std::vector<std::byte>& failed_listing() {
    static const auto kMade = listing_of(FailedCopyEntry{
        .fid = kFid, .file = 12, .name = "results/42", .reason = "a block cannot be read"});
    return kMade;
}

const std::vector<std::byte>& copies_listing() {
    static const auto kMade = listing_of(CopyEntry{.offset = 0,
                                                   .length = 8195,
                                                   .block = 17,
                                                   .file = 2,
                                                   .written_s = 1'795'754'520,
                                                   .cartridge = "A00001L9",
                                                   .state = "ok"},
                                         CopyEntry{.cartridge = "B00001"});
    return kMade;
}

const std::vector<std::byte>& list_listing() {
    static const auto kMade = listing_of(
        ListEntry{.fid = kFid, .size_bytes = 8195, .changed_ns = 17, .name = "results/42"},
        ListEntry{.fid = {.high = 1, .low = 2}, .name = "\u00e9"});
    return kMade;
}

// Of the types from 4 on, which are about objects.
RequestBody object_request(std::uint16_t type) {
    switch (type) {
        case 4: return Slots{};
        case 5: return Statfs{};
        case 6:
            return Create{.name = "results/42",
                          .group = "staff",
                          .slot = 7,
                          .mode = 0640,
                          .no_replace = true,
                          .collection = "run-7"};
        case 7: return Lookup{.name = "results/42"};
        case 8: return Stat{.fid = kFid};
        case 9: return ListObjects{.prefix = "results/", .cursor = "results/41", .count_max = 20};
        case 10:
            return SetAttributes{.fid = kFid,
                                 .owner = "grace",
                                 .group = "staff",
                                 .mode = 0600,
                                 .which = SetAttributes::kOwner | SetAttributes::kMode};
        case 11:
            return Rename{
                .fid = kFid, .from = "results/42", .name = "results/43", .no_replace = true};
        case 12: return Delete{.fid = kFid, .from = "results/42"};
        case 13: return Read{.fid = kFid, .ranges = kRanges, .target = descriptor(7)};
        case 14:
            return Write{.fid = kFid,
                         .ranges = kRanges,
                         .checksums = kChecksums,
                         .source = {},
                         .durability = Durability::kBuffered};
        case 15:
            return Append{
                .fid = kFid, .length = 8193, .checksums = kChecksums, .source = descriptor(9)};
        case 16: return Truncate{.fid = kFid, .size_bytes = 1ULL << 60};
        case 17: return Punch{.fid = kFid, .range = {.offset = 1, .length = 1ULL << 59}};
        case 18: return Sync{.receipts = kReceipts};
        case 19:
            return UploadBegin{.name = "results/42",
                               .group = "staff",
                               .size_bytes = 9000,
                               .slot = 7,
                               .mode = 0640,
                               .no_replace = true,
                               .collection = "run-7"};
        case 20:
            return UploadWrite{.fid = kFid,
                               .range = {.offset = 8192, .length = 8193},
                               .checksums = kChecksums,
                               .source = descriptor(11)};
        case 21: return UploadCommit{.fid = kFid, .size_bytes = 16385, .blocks = 3};
        case 22: return UploadAbort{.fid = kFid};
        case 23: return Quota{.cursor = "fast\nada"};
        case 24: return Stage{.fid = kFid, .pin_s = 259200, .priority = 9};
        case 25: return Release{.fid = kFid};
        case 26: return Recalls{};
        case 27: return RecallWait{.fids = kTickets, .patience_ms = 5000};
        case 28: return RecallCancel{.fid = kFid};
        case 29: return SyncTape{};
        case 30: return Media{.cursor = "A00001L9"};
        case 31: return FormatMedium{.name = "A00001L9", .forget_data = true, .lose_objects = true};
        case 32: return LoadMedium{.name = "A00001L9", .drive = "vtl0-drive0"};
        case 33: return UnloadDrive{.drive = "vtl0-drive0"};
        case 34: return Copies{.fid = kFid};
        case 36: return SetDrive{.drive = "vtl0-drive0", .down = true};
        case 37: return ExportMedium{.name = "A00001L9", .hide_objects = true};
        case 38: return ImportMedia{.name = "A00001L9"};
        case 39: return EpochMessage{.from = "tcp://10.0.0.1:31470", .message = kRecallStates};
        case 35:
            return MediumWork{.name = "A00001L9", .order = MediumWork::Order::kBegin, .first = 7};
        default: return {};
    }
}

ReplyBody object_reply(std::uint16_t type) {
    switch (type) {
        case 4: return SlotsReply{.version = 2};
        case 5:
            return StatfsReply{
                .total_bytes = 1U << 30, .used_bytes = 12288, .free_bytes = 1U << 29, .objects = 1};
        case 6: return CreateReply{.fid = kFid, .version = 1, .receipt = kReceipt};
        case 7: return LookupReply{.attributes = kAttributes};
        case 8: return StatReply{.attributes = kAttributes};
        case 9: return ListObjectsReply{.cursor = "results/42", .end = true};
        case 10: return SetAttributesReply{.changed = kChanged};
        case 11: return RenameReply{.changed = kChanged};
        case 12: return DeleteReply{.receipt = kReceipt};
        case 13:
            return ReadReply{.bytes = 7,
                             .size_bytes = 8195,
                             .version = 9,
                             .incarnation = 3,
                             .checksums = kChecksums};
        case 14: return WriteReply{.changed = kChanged};
        case 15: return AppendReply{.offset = 2, .changed = kChanged};
        case 16: return TruncateReply{.changed = kChanged};
        case 17: return PunchReply{.changed = kChanged};
        case 18: return SyncReply{.receipts = kReceipts};
        case 19: return UploadBeginReply{.fid = kFid};
        case 20: return UploadWriteReply{.receipt = kReceipt};
        case 21: return UploadCommitReply{.version = 1, .receipt = kReceipt};
        case 22: return UploadAbortReply{};
        case 23: return QuotaReply{.cursor = "fast\nada", .end = true};
        case 24: return StageReply{.waits = true};
        case 25: return ReleaseReply{};
        case 26: return RecallsReply{.total = 2, .oldest_ms = 7};
        case 27:
            return RecallWaitReply{
                .states = kRecallStates, .place = 3, .expected_ms = 90'000, .is_damaged = true};
        case 28: return RecallCancelReply{};
        case 29: return SyncTapeReply{};
        case 30: return MediaReply{.cursor = "A00002L9", .end = true};
        case 31: return FormatMediumReply{};
        case 32: return LoadMediumReply{};
        case 33: return UnloadDriveReply{};
        case 34: return CopiesReply{.total = 2, .on_disk = true, .pinned_until_s = 1'800'000'000};
        case 36: return SetDriveReply{};
        case 37: return ExportMediumReply{.objects = 12, .only_here = 3, .in_exchange = true};
        case 38: return ImportMediaReply{.total = 2};
        case 39: return EpochMessageReply{};
        case 35:
            return MediumWorkReply{.state = MediumWorkReply::State::kPartly,
                                   .copies = 1200,
                                   .copy_bytes = 1ULL << 40,
                                   .copies_done = 1199,
                                   .bytes_done = 1ULL << 39,
                                   .failures = 1,
                                   .listed = 1,
                                   .elapsed_ms = 90'000,
                                   .reason = "some copies could not be moved"};
        default: return {};
    }
}

constexpr bool kHasSample = false;  // Of this type of fop: add one.

constexpr RequestHeader kHeader{.job = "sim-42", .pool = "scratch", .user = "ada", .priority = 3};
constexpr PrefixFields kFields{.session = 0x0102030405060708,
                               .sequence = 7,
                               .message_credits = 2,
                               .fop_credits = 5,
                               .acknowledged = 41};

std::vector<std::byte> requests(const RequestHeader& header, std::span<const Request> each) {
    std::vector<std::byte> buffer(16U << 10);
    MessageWriter writer;
    writer.start_requests(buffer, header);
    for (const Request& request : each) ENSURE(writer.add(request));
    buffer.resize(writer.seal(kFields));
    return buffer;
}

std::vector<std::byte> replies(std::span<const Reply> each) {
    std::vector<std::byte> buffer(16U << 10);
    MessageWriter writer;
    writer.start_replies(buffer);
    for (const Reply& reply : each) ENSURE(writer.add(reply));
    buffer.resize(writer.seal(kFields));
    return buffer;
}

std::vector<std::byte> control_message(const Control& control) {
    std::vector<std::byte> buffer(kControlBytesMax);
    MessageWriter writer;
    buffer.resize(writer.write_control(buffer, kFields, control));
    return buffer;
}

std::vector<std::byte> handshake_message() {
    std::vector<std::byte> buffer(512);
    buffer.resize(write_handshake(buffer, {.session = 9}, bytes_of("\x01hello")));
    return buffer;
}

}  // namespace

Request sample_request(std::uint16_t type) {
    Request request{.id = 40U + type, .type = type};
    switch (type) {
        case 1: request.body = Ping{}; return request;
        case 2:
            request.body = Echo{};
            request.timeout = 30s;
            request.token = bytes_of("a capability");
            request.payload = bytes_of("Hello, wire");
            return request;
        case 3:
            request.body =
                BulkEcho{.source = descriptor(1), .target = descriptor(101), .bytes = 1U << 20};
            request.timeout = 1500us;
            return request;
        default: break;
    }
    request.body = object_request(type);
    if (type == 14) request.payload = bytes_of("7 bytes");
    ENSURE(request.body.index() > 0 || kHasSample);
    return request;
}

Reply sample_reply(std::uint16_t type) {
    Reply reply{.id = 40U + type};
    switch (type) {
        case 1: reply.body = PingReply{}; return reply;
        case 2:
            reply.body = EchoReply{};
            reply.payload = bytes_of("Hello, wire");
            return reply;
        case 3: reply.body = BulkEchoReply{.bytes = 1U << 20, .crc = 0xe3069283}; return reply;
        case 4: reply.payload = slots_listing(); break;
        case 5: reply.payload = pools_listing(); break;
        case 9: reply.payload = list_listing(); break;
        case 23: reply.payload = quotas_listing(); break;
        case 26: reply.payload = recalls_listing(); break;
        case 30: reply.payload = media_listing(); break;
        case 34: reply.payload = copies_listing(); break;
        case 35: reply.payload = failed_listing(); break;
        default: break;
    }
    reply.body = object_reply(type);
    ENSURE(reply.body.index() > 0 || kHasSample);
    return reply;
}

std::vector<SampleMessage> sample_messages() {
    std::vector<SampleMessage> samples;
    std::vector<Request> all_requests;
    std::vector<Reply> all_replies;
    for (const FopType& type : kFopTypes) {
        const auto& request = all_requests.emplace_back(sample_request(type.number));
        const auto& reply = all_replies.emplace_back(sample_reply(type.number));
        samples.push_back({"request_" + std::string(type.name), requests(kHeader, {&request, 1})});
        samples.push_back({"reply_" + std::string(type.name), replies({&reply, 1})});
    }
    // Payloads of lengths that leave padding of every kind behind them.
    for (std::size_t length = 1; length <= 9; ++length) {
        Request request = sample_request(2);
        request.payload = request.payload.first(length);
        all_requests.push_back(request);
        Reply reply = sample_reply(2);
        reply.payload = reply.payload.first(length);
        all_replies.push_back(reply);
    }
    all_replies.push_back(
        {.id = 99, .status = Status::kDenied, .words = "the right to write is missing"});
    samples.push_back({"requests_of_every_type", requests(kHeader, all_requests)});
    samples.push_back({"requests_without_a_header", requests({}, all_requests)});
    samples.push_back({"replies_of_every_type", replies(all_replies)});

    constexpr std::array<std::uint64_t, 3> kCancelled{41, 42, 1ULL << 40};
    samples.push_back({"control_of_nothing", control_message({})});
    samples.push_back({"control_of_everything", control_message({.ping = 11,
                                                                 .pong = 12,
                                                                 .surrender_messages = 1,
                                                                 .surrendered_messages = 2,
                                                                 .surrender_fops = 3,
                                                                 .surrendered_fops = 4,
                                                                 .cancel = kCancelled,
                                                                 .bye = Bye::kDraining,
                                                                 .words = "restarting"})});
    samples.push_back({"control_let_go", control_message({.let_go = kCancelled})});
    samples.push_back({"handshake", handshake_message()});
    return samples;
}

std::vector<std::byte> example_listing() {
    return list_listing();
}

std::vector<SampleMessage> sample_listings() {
    return {{"list", list_listing()},       {"slots", slots_listing()},
            {"pools", pools_listing()},     {"quotas", quotas_listing()},
            {"recalls", recalls_listing()}, {"media", media_listing()},
            {"copies", copies_listing()}};
}

std::vector<std::byte> example_message() {
    const std::array each{sample_request(2), sample_request(1)};
    return requests(kHeader, each);
}

std::string hex_dump(std::span<const std::byte> bytes) {
    std::string dump;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        std::array<char, 24> number{};
        std::string hex;
        std::string letters;
        for (const std::byte each :
             bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at))) {
            const auto value = static_cast<unsigned char>(each);
            std::snprintf(number.data(), number.size(), " %02x", value);
            hex += number.data();
            letters += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
        }
        hex.resize(48, ' ');
        std::snprintf(number.data(), number.size(), "%08zx ", at);
        dump += number.data() + hex + "  |" + letters + "|\n";
    }
    return dump;
}

}  // namespace fopd::fop
