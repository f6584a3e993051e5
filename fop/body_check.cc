#include "fop/body_check.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <variant>

#include "fop/borrowed.h"
#include "fop/invalid.h"
#include "fop/name.h"
#include "fop/principal.h"

namespace fopd::fop {

namespace {

using PayloadBytes = std::span<const std::byte>;

bool is_printable_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char each) { return each > ' ' && each <= '~'; });
}

Result<void> check_fid(const Fid& fid) {
    if (!fid.is_set()) return invalid("no object is named");
    return {};
}

Result<void> check_optional_name(std::string_view name) {
    if (name.empty()) return {};
    return check_object_name(name);
}

Result<void> check_new_object(std::string_view name, std::string_view group, std::uint16_t mode) {
    if (!is_name(group)) return invalid("the group is not a valid name");
    if (mode > kModeMax) return invalid("the mode has more than permission bits");
    return check_optional_name(name);
}

// Checks bytes that come with a request or from its sender's memory.
template <typename Body>
Result<void> check_incoming(const Body& body, std::span<const Range> ranges, PayloadBytes payload) {
    const auto named = check_fid(body.fid);
    if (!named) return named;
    const auto sound = check_ranges(ranges);
    if (!sound) return sound;
    if (body.checksums.size() != count_checksums(ranges)) {
        return invalid("the checksums are not as many as the runs of the ranges");
    }
    const std::uint64_t in_payload = body.source ? 0 : total_bytes(ranges);
    if (payload.size() != in_payload) return invalid("the payload is not as long as the ranges");
    return {};
}

// For bodies without fields to check.
template <typename Body>
Result<void> check(const Body& /*body*/, PayloadBytes /*payload*/) {
    return {};
}

Result<void> check(const BulkEcho& echo, PayloadBytes /*payload*/) {
    if (echo.bytes > kBulkEchoBytesMax) return invalid("more than 16 MiB are to be echoed");
    return {};
}

Result<void> check(const Create& create, PayloadBytes /*payload*/) {
    if (!is_name(create.collection)) return invalid("the collection is not a valid name");
    return check_new_object(create.name, create.group, create.mode);
}

Result<void> check(const Lookup& lookup, PayloadBytes /*payload*/) {
    return check_object_name(lookup.name);
}

Result<void> check(const Stat& stat, PayloadBytes /*payload*/) {
    return check_fid(stat.fid);
}

Result<void> check(const ListObjects& list, PayloadBytes /*payload*/) {
    if (list.prefix.size() > kObjectNameBytesMax) return invalid("the prefix is too long");
    if (list.cursor.size() > kObjectNameBytesMax) return invalid("the cursor is too long");
    return {};
}

Result<void> check(const Quota& quota, PayloadBytes /*payload*/) {
    if (quota.cursor.size() > kObjectNameBytesMax) return invalid("the cursor is too long");
    if (quota.wanted_bytes > kOffsetMax) return invalid("the size is beyond 2^60");
    return {};
}

Result<void> check(const SetAttributes& set, PayloadBytes /*payload*/) {
    constexpr unsigned kKnown =
        SetAttributes::kOwner | SetAttributes::kGroup | SetAttributes::kMode;
    if ((set.which & ~kKnown) != 0) return invalid("an attribute is not known");
    if (!is_name(set.owner)) return invalid("the owner is not a valid name");
    const auto sound = check_new_object({}, set.group, set.mode);
    if (!sound) return sound;
    return check_fid(set.fid);
}

Result<void> check(const Rename& rename, PayloadBytes /*payload*/) {
    const auto from = check_optional_name(rename.from);
    if (!from) return from;
    const auto to = check_object_name(rename.name);
    if (!to) return to;
    return check_fid(rename.fid);
}

Result<void> check(const Delete& deletion, PayloadBytes /*payload*/) {
    const auto from = check_optional_name(deletion.from);
    if (!from) return from;
    return check_fid(deletion.fid);
}

Result<void> check(const Read& read, PayloadBytes /*payload*/) {
    const auto sound = check_ranges(read.ranges);
    if (!sound) return sound;
    return check_fid(read.fid);
}

Result<void> check(const Write& write, PayloadBytes payload) {
    if (write.durability != Durability::kDurable && write.durability != Durability::kBuffered) {
        return invalid("the durability is not known");
    }
    return check_incoming(write, write.ranges, payload);
}

Result<void> check(const Append& append, PayloadBytes payload) {
    const std::array ranges{Range{.offset = 0, .length = append.length}};
    return check_incoming(append, ranges, payload);
}

Result<void> check(const Truncate& truncate, PayloadBytes /*payload*/) {
    if (truncate.size_bytes > kOffsetMax) return invalid("the size is beyond 2^60");
    return check_fid(truncate.fid);
}

Result<void> check(const Punch& punch, PayloadBytes /*payload*/) {
    const auto sound = check_range(punch.range);
    if (!sound) return sound;
    return check_fid(punch.fid);
}

Result<void> check(const Sync& sync, PayloadBytes /*payload*/) {
    if (sync.receipts.size() > kReceiptsMax) return invalid("there are more than 256 receipts");
    return {};
}

Result<void> check(const UploadBegin& begin, PayloadBytes /*payload*/) {
    if (begin.size_bytes > kOffsetMax) return invalid("the size is beyond 2^60");
    if (!is_name(begin.collection)) return invalid("the collection is not a valid name");
    return check_new_object(begin.name, begin.group, begin.mode);
}

Result<void> check(const UploadWrite& write, PayloadBytes payload) {
    if (write.range.offset % kBlockBytes != 0) return invalid("the offset is within a block");
    const std::array ranges{write.range};
    return check_incoming(write, ranges, payload);
}

Result<void> check(const UploadCommit& commit, PayloadBytes /*payload*/) {
    if (commit.size_bytes > kOffsetMax) return invalid("the size is beyond 2^60");
    if (commit.blocks > count_checksums(Range{.offset = 0, .length = commit.size_bytes})) {
        return invalid("there are more blocks than the size has");
    }
    return check_fid(commit.fid);
}

Result<void> check(const UploadAbort& abort, PayloadBytes /*payload*/) {
    return check_fid(abort.fid);
}

Result<void> check(const Stage& stage, PayloadBytes /*payload*/) {
    if (stage.pin_s > kPinSecondsMax) return invalid("a pin lasts for ten years at most");
    if (stage.unpin && stage.pin_s > 0) return invalid("it pins, and ends the pin");
    return check_fid(stage.fid);
}

Result<void> check(const Release& release, PayloadBytes /*payload*/) {
    return check_fid(release.fid);
}

Result<void> check(const Copies& copies, PayloadBytes /*payload*/) {
    return check_fid(copies.fid);
}

Result<void> check(const RecallWait& wait, PayloadBytes /*payload*/) {
    if (wait.fids.empty()) return invalid("no recall is named");
    if (wait.fids.size() > kTicketsMax) return invalid("there are more than 64 recalls");
    for (const Fid& fid : wait.fids) {
        const auto named = check_fid(fid);
        if (!named) return named;
    }
    return {};
}

Result<void> check(const RecallCancel& cancel, PayloadBytes /*payload*/) {
    return check_fid(cancel.fid);
}

Result<void> check(const Media& media, PayloadBytes /*payload*/) {
    if (media.cursor.size() > kObjectNameBytesMax) return invalid("the cursor is too long");
    return {};
}

Result<void> check_barcode(std::string_view barcode) {
    if (barcode.empty()) return invalid("no cartridge is named");
    if (barcode.size() > kBarcodeBytesMax || !is_printable_ascii(barcode)) {
        return invalid("the barcode is not valid");
    }
    return {};
}

Result<void> check_drive(std::string_view drive) {
    if (drive.empty()) return invalid("no drive is named");
    if (drive.size() > kObjectNameBytesMax) return invalid("the drive's name is too long");
    return {};
}

Result<void> check(const FormatMedium& format, PayloadBytes /*payload*/) {
    return check_barcode(format.name);
}

Result<void> check(const LoadMedium& load, PayloadBytes /*payload*/) {
    const auto named = check_barcode(load.name);
    if (!named) return named;
    return check_drive(load.drive);
}

Result<void> check(const UnloadDrive& unload, PayloadBytes /*payload*/) {
    return check_drive(unload.drive);
}

Result<void> check(const SetDrive& set, PayloadBytes /*payload*/) {
    return check_drive(set.drive);
}

Result<void> check(const ExportMedium& wish, PayloadBytes /*payload*/) {
    return check_barcode(wish.name);
}

Result<void> check(const ImportMedia& wish, PayloadBytes /*payload*/) {
    if (wish.name.empty()) return {};
    return check_barcode(wish.name);
}

Result<void> check(const MediumWork& work, PayloadBytes /*payload*/) {
    const bool is_known =
        work.kind >= MediumWork::Kind::kRepack && work.kind <= MediumWork::Kind::kFormat;
    if (!is_known) return invalid("an unknown kind of work");
    if (work.order > MediumWork::Order::kEnd) return invalid("an unknown order");
    if (work.kind == MediumWork::Kind::kFormat && work.order != MediumWork::Order::kEnd)
        return invalid("a format can only be ended here");
    return check_barcode(work.name);
}

Result<void> check(const EpochMessage& body, PayloadBytes /*payload*/) {
    if (body.from.empty() || body.from.size() > kAddressBytesMax)
        return invalid("the sender's address is missing or too long");
    if (body.message.empty() || body.message.size() > kEpochMessageBytesMax)
        return invalid("the message is missing or too long");
    return {};
}

bool is_short(std::string_view text) {
    return text.size() <= kObjectNameBytesMax;
}
bool is_short(const List<std::uint32_t>& checksums) {
    return checksums.size() <= kChecksumsMax;
}
bool is_short(const List<Receipt>& receipts) {
    return receipts.size() <= kReceiptsMax;
}
bool is_short(const List<std::uint8_t>& states) {
    return states.size() <= kTicketsMax;
}

// Checks the lengths that a reply states.
template <typename Body>
bool has_short_numbers(const Body& /*body*/) {
    return true;
}
bool has_short_numbers(const Attributes& attributes) {
    return attributes.size_bytes <= kOffsetMax && attributes.allocated_bytes <= kOffsetMax;
}
template <typename Body>
    requires requires(Body body) { body.attributes; }
bool has_short_numbers(const Body& body) {
    return has_short_numbers(body.attributes);
}
template <typename Body>
    requires requires(Body body) { body.changed; }
bool has_short_numbers(const Body& body) {
    if constexpr (requires { body.offset; }) {
        if (body.offset > kOffsetMax) return false;
    }
    return body.changed.size_bytes <= kOffsetMax;
}
bool has_short_numbers(const BulkEchoReply& echo) {
    return echo.bytes <= kBulkEchoBytesMax;
}
bool has_short_numbers(const ReadReply& read) {
    return read.bytes <= kTransferBytesMax && read.size_bytes <= kOffsetMax;
}

}  // namespace

Result<void> check_request(const Request& request) {
    return std::visit([&request](const auto& body) { return check(body, request.payload); },
                      request.body);
}

bool is_bounded(const ReplyBody& body) {
    bool bounded = std::visit([](const auto& each) { return has_short_numbers(each); }, body);
    auto look = [&bounded](const auto& part) { bounded = bounded && is_short(part); };
    std::visit([&look](const auto& each) { for_each_borrowed(each, look); }, body);
    return bounded;
}

}  // namespace fopd::fop
