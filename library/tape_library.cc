#include "library/tape_library.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "devices/tape/drive_model.h"
#include "library/doubles.h"
#include "library/pending_recall.h"
#include "library/repacking.h"
#include "library/scrubbing.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

// How long a library that cannot be opened is left alone.
constexpr Duration kOpenAgain = 30s;

}  // namespace

TapeLibrary::TapeLibrary(const Parts& parts, LibraryOptions options)
    : parts_(parts),
      options_(std::move(options)),
      figures_(options_.pools),
      rings_(parts.reactor),
      changed_(parts.reactor) {
    for (const TapePoolOptions& each : options_.pools) {
        pools_.push_back({.options = each,
                          .id = objects::pool_id(each.name),
                          .figures = &figures_.pool(pools_.size())});
    }
}

TapeLibrary::~TapeLibrary() = default;

void TapeLibrary::start(std::vector<HomeDoors::Door> doors) {
    groups_.resize(doors.size());
    homes_ = std::make_unique<HomeDoors>(parts_.reactor, std::move(doors));
    catalogue_ = std::make_unique<CopyCatalogue>(*homes_);
    parts_.reactor.spawn(gate_, run());
}

Task<void> TapeLibrary::stop() {
    stopping_ = true;
    stop_.cancel();
    stop_recalls();
    for (const auto& [id, repack] : repacks_) repack->cancel.cancel();
    for (const auto& [id, scrub] : scrubs_) scrub->cancel.cancel();
    rings_.wake_all();
    tell_changed();
    co_await gate_.close(parts_.reactor);
    co_await close_drives(Sessions::kEnd);
    if (bay_library_ == nullptr) co_return;
    if (shelf_ != nullptr) {
        [[maybe_unused]] const auto saved = co_await shelf_->save();
    }
    co_await bay_library_->close();
    bay_library_.reset();
}

void TapeLibrary::ring() {
    rung_ = true;
    rings_.wake_all();
}

Task<void> TapeLibrary::run() {
    while (!stopping_) {
        const auto opened = co_await open();
        if (opened) break;
        const std::string reason = describe(opened.error());
        core::emit(
            parts_.events, core::Level::kError, "library.not_open",
            {{"library", std::string_view(options_.name)}, {"reason", std::string_view(reason)}});
        const auto slept = co_await parts_.reactor.sleep_for(kOpenAgain, &stop_);
        if (!slept) co_return;
    }
    if (!stopping_) {
        resume_repacks();
        begin_scrubs();
    }
    rung_ = true;
    while (!stopping_) {
        if (std::exchange(rung_, false)) {
            co_await show_media_to_homes();
            co_await read_news();
            if (stopping_) break;
        }
        const Instant next = std::min(begin_batches(), begin_indexes());
        if (rung_ || stopping_) continue;
        // Woken by news, by the end of a batch, when a group is old enough, and when a session is
        // over.
        const core::WaitOptions until{.deadline = next, .cancel = &stop_};
        [[maybe_unused]] const auto woken = co_await rings_.wait(until);
    }
}

// -- opening --

Task<Result<void>> TapeLibrary::open() {
    auto opened = co_await parts_.bay.open_library(&parts_.reactor, options_);
    if (!opened) co_return std::unexpected(opened.error());
    bay_library_ = *std::move(opened);
    auto ready = co_await open_parts();
    if (!ready) {
        co_await close_drives(Sessions::kLeave);
        shelf_.reset();
        robot_.reset();
        co_await bay_library_->close();
        bay_library_.reset();
        co_return ready;
    }
    core::emit(parts_.events, core::Level::kInfo, "library.open",
               {{"library", std::string_view(options_.name)},
                {"drives", std::uint64_t{units_.size()}},
                {"media", std::uint64_t{shelf_->table().all().size()}}});
    co_return Result<void>{};
}

Task<Result<void>> TapeLibrary::open_parts() {
    const std::vector<devices::TapeDrive*> drives = bay_library_->drives();
    if (drives.empty()) {
        co_return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "the library has no drives"});
    }
    // The scheduler keeps the name of a technology, so it gets that of the model.
    const devices::DriveModel* const model =
        devices::find_drive_model(drives.front()->technology());
    if (model == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "the drives are of an unknown kind"});
    }
    shelf_ = std::make_unique<MediaShelf>(MediaShelf::Parts{.reactor = parts_.reactor,
                                                            .bay = parts_.bay,
                                                            .events = parts_.events,
                                                            .io = parts_.io,
                                                            .figures = figures_,
                                                            .technology = model->technology,
                                                            .bell = this});
    const auto loaded = co_await shelf_->load();
    if (!loaded) co_return loaded;
    robot_ = std::make_unique<Robot>(parts_.reactor, bay_library_->changer());
    const auto looked = co_await robot_->look();
    if (!looked) co_return looked;
    take_inventory();
    const auto adopted = co_await adopt_recorded_media();
    if (!adopted) co_return adopted;
    const auto saved = co_await shelf_->save();
    if (!saved) co_return saved;
    co_return co_await open_drives();
}

// A drive becomes one of units_ when it can be used; before, an administrator cannot ask for it.
Task<Result<void>> TapeLibrary::open_drives() {
    std::uint8_t number = 0;
    const std::vector<devices::TapeDrive*> drives = bay_library_->drives();
    units_.reserve(drives.size());  // Units stay where they are while they are in use.
    for (devices::TapeDrive* const each : drives) {
        const devices::DriveModel* const model = devices::find_drive_model(each->technology());
        DriveFigures* const figures = figures_.drive(each->name());
        if (model == nullptr || figures == nullptr) continue;
        figures->is_present.set(1);
        auto measured = std::make_unique<MeasuredDrive>(parts_.reactor, *each, *figures);
        const DriveUnit::Parts unit_parts{.reactor = parts_.reactor,
                                          .clock = parts_.clock,
                                          .events = parts_.events,
                                          .drive = *measured,
                                          .robot = *robot_,
                                          .shelf = *shelf_,
                                          .blame = blame_,
                                          .catalogue = *catalogue_,
                                          .node = parts_.node};
        auto unit = std::make_unique<DriveUnit>(unit_parts);
        co_await unit->look_into();
        if (shelf_->table().is_drive_down(each->serial())) {
            // It may have been killed before the cartridge was back in its slot.
            if (unit->cartridge()) {
                [[maybe_unused]] const auto unloaded = co_await unit->unload();
            }
            unit->take_down();
        }
        const io_sched::IoDevice::Drive drive{.number = ++number, .technology = model->technology};
        const auto added = parts_.io.add_drive(drive, unit->executor());
        if (!added) co_return std::unexpected(added.error());
        const auto cartridge = unit->cartridge();
        if (cartridge) parts_.io.set_drive_medium(**added, io_sched::MediumId{*cartridge});
        units_.push_back(
            {.measured = std::move(measured), .drive = std::move(unit), .device = *added});
        show_drives();
        say_up(*units_.back().drive);
    }
    co_return Result<void>{};
}

void TapeLibrary::say_up(const DriveUnit& unit) {
    if (unit.is_down()) return;
    core::emit(parts_.events, core::Level::kInfo, "library.drive_up",
               {{"drive", unit.name()},
                {"serial", unit.drive().serial()},
                {"technology", unit.drive().technology()}});
}

Task<void> TapeLibrary::close_drives(Sessions sessions) {
    for (const Unit& each : units_) co_await parts_.io.remove_drive(*each.device);
    for (const Unit& each : units_) {
        if (sessions == Sessions::kEnd) co_await each.drive->end_session();
        each.measured->figures().is_present.set(0);
    }
    units_.clear();
}

// Tells the scheduler which drives have found that they are down.
void TapeLibrary::show_drives() {
    for (const Unit& each : units_) {
        if (!each.drive->is_down() || each.is_handled) continue;
        parts_.io.set_drive_state(*each.device, io_sched::DeviceState::kDown);
    }
}

// Compares the table of media with the elements that the changer reports.
void TapeLibrary::take_inventory() {
    std::set<std::string> present;
    for (const devices::LibraryElement& each : robot_->elements()) {
        if (!each.full) continue;
        if (!is_barcode(each.barcode)) {
            core::emit(parts_.events, core::Level::kWarn, "library.no_barcode",
                       {{"element", std::uint64_t{each.address}},
                        {"barcode", std::string_view(each.barcode)}});
            continue;
        }
        const Cartridge* known = shelf_->table().find(each.barcode);
        if (known == nullptr) known = shelf_->to_change().add(each.barcode);
        if (known == nullptr) continue;  // The table is full.
        present.insert(each.barcode);
    }
    const Doubles doubles = find_doubles(robot_->elements(), shelf_->table());
    for (const std::string& barcode : present) {
        const Cartridge& known = *shelf_->table().find(barcode);
        const CartridgeId id = known.id;
        const bool is_labelled = known.generation > 0;
        const bool is_back = known.state == CartridgeState::kMissing || is_disabled_double(known);
        if (const auto is_double = doubles.find(barcode); is_double != doubles.end()) {
            shelf_->set_state(id, CartridgeState::kDisabled, is_double->second);
        } else if (is_back) {
            shelf_->set_state(id, is_labelled ? CartridgeState::kOk : CartridgeState::kBlank, "");
        } else {
            shelf_->show(id);
        }
    }
    for (const Cartridge& each : std::vector(shelf_->table().all())) {
        const bool is_forbidden =
            each.state == CartridgeState::kDisabled && !is_disabled_double(each);
        const bool stays_away = is_forbidden || each.state == CartridgeState::kExported ||
                                each.state == CartridgeState::kMissing;
        if (!stays_away && robot_->count(each.barcode) == 0) {
            shelf_->set_state(each.id, CartridgeState::kMissing, "it is not in the library");
        }
    }
}

// The table of media may be lost, or be one of an earlier time. The records of copies, which are of
// the disks' logs, know which label a cartridge must have at least. The end of its data is found
// when it is written next.
Task<Result<void>> TapeLibrary::adopt_recorded_media() {
    RecordedMedia all;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [](StagingDisks& disks) { return disks.recorded_media(); };
        auto answer = co_await homes_->call_at<Result<RecordedMedia>>(locality, &job);
        if (!answer) co_return std::unexpected(answer.error());
        if (!*answer) co_return std::unexpected(answer->error());
        for (const auto& [vsn, recorded] : **answer) {
            RecordedMedium& known = all[vsn];
            if (recorded.generation > known.generation) known = recorded;
        }
    }
    for (const Cartridge& each : std::vector(shelf_->table().all())) {
        const auto recorded = all.find(each.vsn_text());
        if (recorded == all.end() || each.generation >= recorded->second.generation) continue;
        adopt(each.id, recorded->second);
    }
    co_return Result<void>{};
}

void TapeLibrary::adopt(CartridgeId id, const RecordedMedium& recorded) {
    const Pool* const pool = find_pool(recorded.pool);
    Cartridge& cartridge = *shelf_->to_change().change(id);
    cartridge.begin_generation(recorded.generation,
                               pool == nullptr ? std::string_view() : pool->options.name);
    const std::string barcode = cartridge.barcode;
    core::emit(parts_.events, core::Level::kWarn, "library.medium_adopted",
               {{"medium", std::string_view(barcode)},
                {"generation", std::uint64_t{recorded.generation}}});
    const bool is_there = cartridge.state == CartridgeState::kBlank ||
                          cartridge.state == CartridgeState::kForeign ||
                          is_readable(cartridge.state);
    if (is_there) shelf_->set_state(id, CartridgeState::kOk, "");
    shelf_->show(id);
}

// -- what the homes are told, and tell --

Task<void> TapeLibrary::show_media_to_homes() {
    const std::uint64_t changes = shelf_->changes();
    if (media_shown_ == changes) co_return;
    KnownMedia media;
    for (const Cartridge& each : shelf_->table().all()) {
        if (each.generation == 0) continue;
        const bool is_good = is_readable(each.state) && each.state != CartridgeState::kSuspect;
        KnownMedium& known = media[each.vsn_text()];
        if (is_good || known.generation == 0) {
            known = {.generation = each.generation,
                     .is_good = is_good,
                     .is_repacked = each.repack == Repack::kRunning};
        }
    }
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [&media](StagingDisks& disks) { return disks.set_media(media); };
        const auto shown = co_await homes_->run_at<void>(locality, &job);
        if (shown || stopping_) continue;
        const std::string reason = describe(shown.error());
        core::emit(parts_.events, core::Level::kError, "library.media_not_shown",
                   {{"locality", std::uint64_t{locality}}, {"reason", std::string_view(reason)}});
    }
    media_shown_ = changes;
}

Task<void> TapeLibrary::read_news() {
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [](StagingDisks& disks) { return disks.take_news(); };
        auto news = co_await homes_->call_at<StagingNews>(locality, &job);
        if (!news) continue;
        groups_[locality] = std::move(news->groups);
        for (const store::Fid fid : news->ended) end_recall(fid);
        for (RecallNote& note : news->recalls) take_recall(locality, std::move(note));
    }
    count_waiting();
    tell_changed();
}

void TapeLibrary::count_waiting() {
    for (const Pool& pool : pools_) {
        std::uint64_t objects = 0;
        std::uint64_t bytes = 0;
        Instant oldest = kNever;
        for (const auto& of_locality : groups_) {
            for (const StagedObjects::Group& each : of_locality) {
                if (each.key.pool != pool.id) continue;
                objects += each.objects;
                bytes += each.bytes;
                oldest = std::min(oldest, each.oldest);
            }
        }
        put_instant(pool.figures->oldest_ns, oldest);
        pool.figures->waiting_bytes.set(bytes);
        pool.figures->waiting_objects.set(objects);
    }
}

TapeLibrary::Pool* TapeLibrary::find_pool(objects::PoolId id) {
    const auto found = std::ranges::find(pools_, id, &Pool::id);
    return found == pools_.end() ? nullptr : &*found;
}

}  // namespace fopd::library
