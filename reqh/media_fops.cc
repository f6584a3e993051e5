// Executes the fops on cartridges and drives.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/stable_sort.h"
#include "fop/listing.h"
#include "library/library.h"
#include "library/media_bytes.h"
#include "objects/fids.h"
#include "reqh/at_library.h"
#include "reqh/every_locality.h"
#include "reqh/operation.h"
#include "reqh/tape_fops.h"

namespace fopd::reqh {

namespace {

struct MediaList {
    std::vector<library::Cartridge> cartridges;
    std::vector<library::DriveRow> drives;
};

enum class Look : std::uint8_t { kNone, kForNew };

Task<MediaList> list_media(library::LibraryService* service, Look look) {
    if (look == Look::kForNew) co_await service->look_for_media();
    MediaList list{.cartridges = service->media(), .drives = service->drives()};
    co_return list;
}

Task<Granted<MediaList>> ask_media(Operation* operation, const library::LibraryDoor* door,
                                   Look look) {
    auto job = [look](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return list_media(&service, look);
    };
    co_return co_await run_at_library<MediaList>(operation, door, &job);
}

Task<library::MediaBytes> count_bytes(Operation* operation, const MediaList* list) {
    library::MediaBytes bytes;
    auto look = [&bytes, list](objects::Stores& there) {
        library::add_media_bytes(there, list->cartridges, bytes);
    };
    co_await at_every_locality(operation, &look);
    co_return bytes;
}

std::string_view drive_of(const MediaList& list, std::string_view barcode) {
    const auto found = std::ranges::find(list.drives, barcode, &library::DriveRow::barcode);
    return found == list.drives.end() ? std::string_view() : std::string_view(found->name);
}

// Without the drive that has it, and what only its home knows.
fop::MediumEntry entry_of(const library::Cartridge& cartridge) {
    return {.capacity_bytes = cartridge.capacity_bytes,
            .used_bytes = cartridge.used_bytes,
            .files = cartridge.files,
            .mounts = cartridge.mounts,
            .generation = cartridge.generation,
            .scrubbed_s = cartridge.scrubbed_s,
            .damaged_copies = cartridge.damaged_copies,
            .failures = cartridge.failures,
            .barcode = cartridge.barcode,
            .pool = cartridge.pool,
            .technology = cartridge.technology,
            .state = library::to_string(cartridge.state),
            .reason = cartridge.remark()};
}

}  // namespace

Task<std::vector<library::Cartridge>> list_cartridges(Operation* operation) {
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr) co_return std::vector<library::Cartridge>{};
    auto listed = co_await ask_media(operation, door, Look::kNone);
    if (!listed) co_return std::vector<library::Cartridge>{};
    co_return std::move(listed->cartridges);
}

Task<fop::Reply> run_media(Operation* operation) {
    operation->enter(Phase::kExecute);
    const auto& asked = operation->body<fop::Media>();
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr) co_return fop::Reply{.body = fop::MediaReply{.end = true}};
    const auto open = co_await check_open(operation, door, Opening::kRefused);
    if (!open) co_return operation->refuse(open.error());
    const Look look = asked.cursor.empty() ? Look::kForNew : Look::kNone;
    auto listed = co_await ask_media(operation, door, look);
    if (!listed) co_return operation->refuse(listed.error());
    core::stable_sort(listed->cartridges, std::less{}, &library::Cartridge::barcode);
    const library::MediaBytes bytes = co_await count_bytes(operation, &*listed);
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    operation->work().text = asked.cursor;
    bool is_end = true;
    for (const library::Cartridge& each : listed->cartridges) {
        if (each.barcode <= asked.cursor) continue;
        const library::MediumBytes bytes_of_it = library::bytes_of(bytes, each);
        fop::MediumEntry entry = entry_of(each);
        entry.live_bytes = bytes_of_it.live;
        entry.dead_bytes = bytes_of_it.dead;
        entry.drive = drive_of(*listed, each.barcode);
        is_end = writer.add(entry);
        if (!is_end) break;
        operation->work().text = each.barcode;
    }
    co_return fop::Reply{.payload = writer.written(),
                         .body = fop::MediaReply{.cursor = operation->work().text, .end = is_end}};
}

namespace {

// Runs the task `waited(service, wait)` at the library, which waits for the end of an operation on
// media. The fop does not wait for it when the server stops.
template <typename Waited>
Task<Granted<library::MediaOutcome>> run_waiting(Operation* operation, Waited* waited) {
    operation->enter(Phase::kExecute);
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr) co_return refused(kNoLibrary);
    const auto open = co_await check_open(operation, door, Opening::kRefused);
    if (!open) co_return refused(open.error());
    auto done = co_await run_at_library<library::MediaOutcome>(operation, door, waited);
    if (!done) co_return refused(done.error());
    if (done->kind == library::MediaOutcome::Kind::kDone) co_return *std::move(done);
    operation->work().text = std::move(done->words);
    co_return refused(status_of(done->kind), operation->work().text);
}

// Runs an operation of the library on media, which cannot be cancelled once it has begun.
template <typename Job>
Task<Granted<library::MediaOutcome>> run_change(Operation* operation, Job* job) {
    const library::LibraryDoor* const door = door_of(*operation);
    auto waited = [job, door](library::LibraryService& service, core::WaitOptions wait) {
        return wait_for_change(door, (*job)(service, wait), wait);
    };
    co_return co_await run_waiting(operation, &waited);
}

template <typename Body, typename Job>
Task<fop::Reply> change_media(Operation* operation, Job* job) {
    const auto done = co_await run_change(operation, job);
    if (!done) co_return operation->refuse(done.error());
    co_return fop::Reply{.body = Body{}};
}

}  // namespace

Task<fop::Reply> run_copies(Operation* operation) {
    const store::Fid fid = objects::store_fid(operation->body<fop::Copies>().fid);
    const auto found = co_await operation->look_at(fid, objects::Access::kRead);
    if (!found) co_return operation->refuse(found.error());
    const bool on_disk = !operation->object().is_released;
    const auto copies = operation->volume().copies_of(fid);
    if (!copies) co_return operation->refuse(untraced(copies.error()));
    const auto recall = operation->volume().map().find_recall(fid);
    if (!recall) co_return operation->refuse(untraced(recall.error()));
    const std::int64_t pinned_ns = recall->has_value() ? (*recall)->pinned_until.unix_ns : 0;
    const bool is_pinned = pinned_ns > operation->wall().unix_ns;
    const std::uint64_t pinned_until_s =
        is_pinned ? static_cast<std::uint64_t>((pinned_ns + 999'999'999) / 1'000'000'000) : 0;
    operation->enter(Phase::kExecute);
    MediaList list;
    const library::LibraryDoor* const door = door_of(*operation);
    if (door != nullptr && !copies->empty()) {
        auto listed = co_await ask_media(operation, door, Look::kNone);
        if (!listed) co_return operation->refuse(listed.error());
        list = std::move(*listed);
    }
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    for (const store::Copy& each : *copies) {
        const library::Cartridge* const cartridge =
            library::find_cartridge(list.cartridges, each.cartridge);
        const bool is_here = cartridge != nullptr;
        const fop::CopyEntry entry{
            .offset = each.offset,
            .length = each.length,
            .block = each.block,
            .file = each.position.file,
            .written_s = each.written_s,
            .cartridge =
                is_here ? std::string_view(cartridge->barcode) : store::text_of(each.cartridge.vsn),
            .state = is_here ? library::to_string(cartridge->state) : std::string_view()};
        if (!writer.add(entry)) break;
    }
    co_return fop::Reply{
        .payload = writer.written(),
        .body = fop::CopiesReply{
            .total = copies->size(), .on_disk = on_disk, .pinned_until_s = pinned_until_s}};
}

namespace {

library::FormatForce force_of(const fop::FormatMedium& asked) {
    using Force = library::FormatForce;
    if (!asked.forget_data) return Force::kRefuseData;
    return asked.lose_objects ? Force::kLoseObjects : Force::kForgetData;
}

}  // namespace

Task<fop::Reply> run_format_medium(Operation* operation) {
    const auto& asked = operation->body<fop::FormatMedium>();
    const auto pool = operation->layout().find_pool();
    if (!pool) co_return operation->refuse(pool.error());
    const library::LibraryService::FormatWish wish{
        .barcode = std::string(asked.name),
        .pool = operation->stores().layout().find_pool(*pool)->name,
        .force = force_of(asked)};
    const library::LibraryDoor* const door = door_of(*operation);
    auto job = [&wish, door](library::LibraryService& /*service*/, core::WaitOptions wait) {
        return wait_for_format(door, wish, wait);
    };
    const auto done = co_await run_waiting(operation, &job);
    if (!done) co_return operation->refuse(done.error());
    co_return fop::Reply{.body = fop::FormatMediumReply{}};
}

Task<fop::Reply> run_load_medium(Operation* operation) {
    const auto& asked = operation->body<fop::LoadMedium>();
    const library::LibraryService::LoadWish wish{.barcode = std::string(asked.name),
                                                 .drive = std::string(asked.drive)};
    auto job = [&wish](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return service.load(wish);
    };
    co_return co_await change_media<fop::LoadMediumReply>(operation, &job);
}

Task<fop::Reply> run_unload_drive(Operation* operation) {
    const std::string drive(operation->body<fop::UnloadDrive>().drive);
    auto job = [&drive](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return service.unload(drive);
    };
    co_return co_await change_media<fop::UnloadDriveReply>(operation, &job);
}

Task<fop::Reply> run_set_drive(Operation* operation) {
    const auto& asked = operation->body<fop::SetDrive>();
    const std::string drive(asked.drive);
    const bool goes_down = asked.down;
    auto job = [&drive, goes_down](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return goes_down ? service.take_drive_down(drive) : service.bring_drive_up(drive);
    };
    co_return co_await change_media<fop::SetDriveReply>(operation, &job);
}

Task<fop::Reply> run_export_medium(Operation* operation) {
    const auto& asked = operation->body<fop::ExportMedium>();
    const library::LibraryService::ExportWish wish{.barcode = std::string(asked.name),
                                                   .hides_objects = asked.hide_objects};
    auto job = [&wish](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return service.export_medium(wish);
    };
    const auto done = co_await run_change(operation, &job);
    if (!done) co_return operation->refuse(done.error());
    co_return fop::Reply{.body = fop::ExportMediumReply{.objects = done->objects,
                                                        .only_here = done->only_here,
                                                        .in_exchange = done->is_in_exchange}};
}

Task<fop::Reply> run_import_media(Operation* operation) {
    const std::string barcode(operation->body<fop::ImportMedia>().name);
    auto job = [&barcode](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return service.import_media(barcode);
    };
    const auto done = co_await run_change(operation, &job);
    if (!done) co_return operation->refuse(done.error());
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    for (const library::Cartridge& each : done->imported) {
        if (!writer.add(entry_of(each))) break;
    }
    const auto total = static_cast<std::uint32_t>(done->imported.size());
    co_return fop::Reply{.payload = writer.written(),
                         .body = fop::ImportMediaReply{.total = total}};
}

}  // namespace fopd::reqh
