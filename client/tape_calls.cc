// SPDX-License-Identifier: BSD-2-Clause
#include "client/tape_calls.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "core/printable.h"
#include "fop/listing.h"

namespace fopd::client {

namespace {

Duration in_milliseconds(std::uint64_t count) {
    constexpr std::uint64_t kMax = 1000ULL * 3600 * 24 * 366 * 100;
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(count, kMax)));
}

RecallInfo tape_info_of(const fop::RecallEntry& entry) {
    RecallInfo info{.fid = entry.fid,
                    .name = std::string(entry.name),
                    .size_bytes = entry.size_bytes,
                    .place = entry.place,
                    .age = in_milliseconds(entry.asked_ms),
                    .expected_in = std::nullopt,
                    .is_reading = entry.state == fop::RecallEntry::State::kReading,
                    .priority = entry.priority,
                    .cartridge = std::string(entry.cartridge),
                    .requester = std::string(entry.requester)};
    if (entry.expected_ms != fop::RecallEntry::kUnknown) {
        info.expected_in = in_milliseconds(entry.expected_ms);
    }
    return info;
}

CopyInfo tape_info_of(const fop::CopyEntry& entry) {
    return {.cartridge = std::string(entry.cartridge),
            .state = std::string(entry.state),
            .file = entry.file,
            .block = entry.block,
            .offset = entry.offset,
            .size_bytes = entry.length,
            .written_ns = std::uint64_t{entry.written_s} * 1'000'000'000};
}

Medium medium_of(const fop::MediumEntry& entry) {
    return {.barcode = std::string(entry.barcode),
            .pool = std::string(entry.pool),
            .technology = std::string(entry.technology),
            .state = std::string(entry.state),
            .drive = std::string(entry.drive),
            .reason = std::string(entry.reason),
            .capacity_bytes = entry.capacity_bytes,
            .used_bytes = entry.used_bytes,
            .dead_bytes = entry.dead_bytes,
            .files = entry.files,
            .mounts = entry.mounts,
            .generation = entry.generation,
            .scrubbed_s = entry.scrubbed_s,
            .damaged_copies = entry.damaged_copies,
            .live_bytes = entry.live_bytes,
            .failures = entry.failures};
}

}  // namespace

Task<Outcome<StageInfo>> TapeCalls::stage(StageWish wish, Wait wait) {
    const auto pin = std::chrono::duration_cast<std::chrono::seconds>(wish.pin);
    const fop::Stage body{.fid = wish.fid,
                          .pin_s = static_cast<std::uint64_t>(pin.count()),
                          .priority = wish.priority,
                          .unpin = wish.unpins};
    const auto answer = co_await slots_.ask_slot(wish.fid.slot(), slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::StageReply>(*answer);
    if (reply == nullptr) co_return nonsense();
    co_return StageInfo{.waits = reply->waits, .reason = core::printable(answer->words)};
}

Task<Outcome<void>> TapeCalls::release(fop::Fid fid, Wait wait) {
    const auto answer =
        co_await slots_.ask_slot(fid.slot(), slots_.request(fop::Release{.fid = fid}, wait));
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<ObjectCopies>> TapeCalls::copies(fop::Fid fid, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = slots_.request(fop::Copies{.fid = fid}, wait);
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_slot(fid.slot(), asked);
    if (!answer) {
        const bool is_older = answer.error().status == fop::Status::kUnknownFop;
        if (is_older) co_return ObjectCopies{};
        co_return std::unexpected(answer.error());
    }
    const auto* const reply = body_of<fop::CopiesReply>(*answer);
    const auto entries = fop::read_copies(std::span(payload).first(answer->payload_bytes));
    if (reply == nullptr || !entries) co_return nonsense();
    constexpr std::uint64_t kNanoseconds = 1'000'000'000;
    // Later times are shown as the year 2500.
    const std::uint64_t until_s = std::min(reply->pinned_until_s, std::uint64_t{16'725'225'600});
    ObjectCopies found{
        .copies = {}, .on_disk = reply->on_disk, .pinned_until_ns = until_s * kNanoseconds};
    for (const fop::CopyEntry& each : *entries) found.copies.push_back(tape_info_of(each));
    co_return found;
}

Task<Outcome<RecallQueue>> TapeCalls::recalls(Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = slots_.request(fop::Recalls{}, wait);
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::RecallsReply>(*answer);
    const auto entries = fop::read_recalls(std::span(payload).first(answer->payload_bytes));
    if (reply == nullptr || !entries) co_return nonsense();
    RecallQueue queue{
        .recalls = {}, .total = reply->total, .reason = core::printable(answer->words)};
    if (reply->oldest_ms != fop::RecallsReply::kUnknown) {
        queue.oldest = in_milliseconds(reply->oldest_ms);
    }
    for (const fop::RecallEntry& each : *entries) queue.recalls.push_back(tape_info_of(each));
    co_return queue;
}

Task<Outcome<std::vector<FormatInfo>>> TapeCalls::formats(Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = slots_.request(fop::Recalls{.formats = true}, wait);
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::RecallsReply>(*answer);
    if (reply == nullptr) co_return nonsense();
    std::vector<FormatInfo> formats;
    if (!reply->formats) co_return formats;
    const auto entries = fop::read_formats(std::span(payload).first(answer->payload_bytes));
    if (!entries) co_return nonsense();
    for (const fop::FormatEntry& each : *entries) {
        formats.push_back({.cartridge = std::string(each.cartridge),
                           .pool = std::string(each.pool),
                           .age = in_milliseconds(each.asked_ms),
                           .is_running = each.state == fop::FormatEntry::State::kRunning});
    }
    co_return formats;
}

Task<Outcome<void>> TapeCalls::cancel_format(std::string barcode, Wait wait) {
    const fop::MediumWork body{.name = barcode,
                               .kind = fop::MediumWork::Kind::kFormat,
                               .order = fop::MediumWork::Order::kEnd};
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = slots_.request(body, wait);
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<void>> TapeCalls::cancel(fop::Fid fid, Wait wait) {
    const auto answer =
        co_await slots_.ask_slot(fid.slot(), slots_.request(fop::RecallCancel{.fid = fid}, wait));
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<void>> TapeCalls::sync(std::string pool, Wait wait) {
    fabric::CallRequest asked = slots_.request(fop::SyncTape{}, wait);
    asked.header.pool = pool;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<std::vector<Medium>>> TapeCalls::media(Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    std::vector<Medium> media;
    std::string cursor;
    for (bool is_end = false; !is_end;) {
        fabric::CallRequest asked = slots_.request(fop::Media{.cursor = cursor}, wait);
        asked.reply_into = payload;
        const auto answer = co_await slots_.ask_home(asked);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const reply = body_of<fop::MediaReply>(*answer);
        const auto entries = fop::read_media(std::span(payload).first(answer->payload_bytes));
        if (reply == nullptr || !entries) co_return nonsense();
        is_end = reply->end;
        // Without progress the caller would go on for ever.
        if (!is_end && reply->cursor <= cursor) co_return nonsense();
        cursor = std::string(reply->cursor);
        for (const fop::MediumEntry& each : *entries) media.push_back(medium_of(each));
    }
    co_return media;
}

Task<Outcome<void>> TapeCalls::format(FormatWish wish, Wait wait) {
    const fop::FormatMedium body{.name = wish.barcode,
                                 .forget_data = wish.force != Force::kRefuseData,
                                 .lose_objects = wish.force == Force::kLoseObjects};
    fabric::CallRequest asked = slots_.request(body, wait);
    asked.header.pool = wish.pool;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<void>> TapeCalls::load(LoadWish wish, Wait wait) {
    const fop::LoadMedium body{.name = wish.barcode, .drive = wish.drive};
    const auto answer = co_await slots_.ask_home(slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<void>> TapeCalls::unload(std::string drive, Wait wait) {
    const auto answer =
        co_await slots_.ask_home(slots_.request(fop::UnloadDrive{.drive = drive}, wait));
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<ExportInfo>> TapeCalls::export_medium(ExportWish wish, Wait wait) {
    const fop::ExportMedium body{.name = wish.barcode, .hide_objects = wish.hides_objects};
    const auto answer = co_await slots_.ask_home(slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::ExportMediumReply>(*answer);
    if (reply == nullptr) co_return nonsense();
    co_return ExportInfo{.objects = reply->objects,
                         .only_here = reply->only_here,
                         .in_exchange = reply->in_exchange};
}

Task<Outcome<ImportInfo>> TapeCalls::import_media(std::string barcode, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = slots_.request(fop::ImportMedia{.name = barcode}, wait);
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::ImportMediaReply>(*answer);
    const auto entries = fop::read_media(std::span(payload).first(answer->payload_bytes));
    if (reply == nullptr || !entries) co_return nonsense();
    ImportInfo info{.media = {}, .total = reply->total};
    for (const fop::MediumEntry& each : *entries) info.media.push_back(medium_of(each));
    co_return info;
}

Task<Outcome<void>> TapeCalls::set_drive(std::string drive, DriveUse use, Wait wait) {
    const fop::SetDrive body{.drive = drive, .down = use == DriveUse::kDown};
    const auto answer = co_await slots_.ask_home(slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<WorkInfo>> TapeCalls::work(WorkWish wish, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    WorkInfo info;
    for (;;) {
        const fop::MediumWork body{.name = wish.barcode,
                                   .kind = wish.kind,
                                   .order = wish.order,
                                   .first = static_cast<std::uint32_t>(info.failed.size())};
        fabric::CallRequest asked = slots_.request(body, wait);
        asked.header.pool = wish.pool;
        asked.reply_into = payload;
        const auto answer = co_await slots_.ask_home(asked);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const reply = body_of<fop::MediumWorkReply>(*answer);
        const auto entries =
            fop::read_failed_copies(std::span(payload).first(answer->payload_bytes));
        if (reply == nullptr || !entries) co_return nonsense();
        info.state = reply->state;
        info.copies = reply->copies;
        info.bytes = reply->copy_bytes;
        info.copies_done = reply->copies_done;
        info.bytes_done = reply->bytes_done;
        info.failures = reply->failures;
        info.elapsed = std::chrono::milliseconds(reply->elapsed_ms);
        info.reason = std::string(reply->reason);
        for (const fop::FailedCopyEntry& each : *entries) {
            info.failed.push_back({.fid = each.fid,
                                   .file = each.file,
                                   .name = std::string(each.name),
                                   .reason = std::string(each.reason)});
        }
        // More failures than fit into a reply.
        if (entries->empty() || info.failed.size() >= reply->listed) co_return info;
        wish.order = fop::MediumWork::Order::kShow;
    }
}

}  // namespace fopd::client
