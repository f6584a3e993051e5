#include "library/tape_library.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "core/ensure.h"
#include "core/stable_sort.h"
#include "devices/tape/drive_model.h"
#include "library/drive_handling.h"
#include "library/pending_recall.h"
#include "library/repacking.h"
#include "library/rescuing.h"
#include "library/scrubbing.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

// The pause before the next attempt to open a library.
constexpr Duration kOpenAgain = 30s;

}  // namespace

TapeLibrary::TapeLibrary(const Parts& parts, LibraryOptions options)
    : parts_(parts),
      options_(std::move(options)),
      figures_(options_.pools),
      looked_(parts.reactor),
      rings_(parts.reactor),
      changed_(parts.reactor),
      repacks_({parts.reactor, gate_, stop_, changed_}),
      scrubs_({parts.reactor, gate_, stop_, changed_}),
      rescues_({parts.reactor, gate_, stop_, changed_}) {
    for (const TapePoolOptions& each : options_.pools) {
        pools_.push_back({.options = each,
                          .id = objects::pool_id(each.name),
                          .figures = &figures_.pool(pools_.size())});
    }
}

TapeLibrary::~TapeLibrary() = default;

void TapeLibrary::start(std::vector<HomeDoors::Door> doors) {
    groups_.resize(doors.size());
    uncopied_.resize(doors.size());
    homes_ = std::make_unique<HomeDoors>(parts_.reactor, std::move(doors));
    catalogue_ = std::make_unique<CopyCatalogue>(*homes_);
    opening_ = Opening::kRuns;
    parts_.reactor.spawn(gate_, run());
}

Task<std::uint64_t> TapeLibrary::stop(Instant deadline) {
    stopping_ = true;
    stop_.cancel();
    stop_recalls();
    repacks_.cancel_all();
    scrubs_.cancel_all();
    rescues_.cancel_all();
    rings_.wake_all();
    tell_changed();
    looked_.wake_all();
    parts_.reactor.spawn(ending_, end());
    const auto ended = co_await ending_.close_by(parts_.reactor, deadline);
    co_return ended ? 0 : say_left();
}

std::uint64_t TapeLibrary::say_left() const {
    std::string running;
    std::uint64_t count = 0;
    for (const Unit& each : units_) {
        const DriveUnit& unit = *each.drive;
        if (unit.activity() == DriveActivity::kIdle || unit.is_down()) continue;
        const Cartridge* const cartridge =
            unit.cartridge() ? shelf_->find(*unit.cartridge()) : nullptr;
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(parts_.reactor.now() -
                                                                              unit.busy_since());
        if (!running.empty()) running += "; ";
        running += std::string(unit.name()) + " is " + std::string(to_string(unit.activity()));
        if (cartridge != nullptr) running += " " + cartridge->barcode;
        running += " for " + std::to_string(seconds.count()) + " s";
        ++count;
    }
    if (count == 0) running = "the library is being opened or closed";
    core::emit(
        parts_.events, core::Level::kWarn, "library.left_running",
        {{"library", std::string_view(options_.name)}, {"running", std::string_view(running)}});
    return std::max<std::uint64_t>(count, 1);
}

Task<void> TapeLibrary::end() {
    co_await gate_.close(parts_.reactor);
    resting_.clear();
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
        opening_ = Opening::kRuns;
        const auto opened = co_await open();
        opening_ = opened ? Opening::kSucceeded : Opening::kFailed;
        tell_changed();
        if (opened) break;
        const std::string reason = describe(opened.error());
        not_open_ = reason;
        core::emit(
            parts_.events, core::Level::kError, "library.not_open",
            {{"library", std::string_view(options_.name)}, {"reason", std::string_view(reason)}});
        const auto slept = co_await parts_.reactor.sleep_for(kOpenAgain, &stop_);
        if (!slept) co_return;
    }
    if (!stopping_) {
        begin_scrubs();
        begin_rescues();
    }
    rung_ = true;
    while (!stopping_) {
        if (std::exchange(rung_, false)) {
            resume_repacks();
            co_await show_media_to_homes();
            co_await read_news();
            if (stopping_) break;
        }
        const Instant next = std::min({begin_batches(), begin_indexes(), offer_blanks()});
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
    not_open_.clear();
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
    std::vector<std::string_view> technologies;
    for (const devices::TapeDrive* const each : drives) {
        const devices::DriveModel* const model = devices::find_drive_model(each->technology());
        if (model == nullptr) continue;
        const bool is_new =
            std::ranges::find(technologies, model->technology) == technologies.end();
        if (is_new) technologies.push_back(model->technology);
    }
    if (technologies.empty()) {
        co_return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "the drives are of an unknown kind"});
    }
    shelf_ = std::make_unique<MediaShelf>(MediaShelf::Parts{.reactor = parts_.reactor,
                                                            .bay = parts_.bay,
                                                            .events = parts_.events,
                                                            .io = parts_.io,
                                                            .figures = figures_,
                                                            .technologies = technologies,
                                                            .bell = this});
    const auto loaded = co_await shelf_->load();
    if (!loaded) co_return loaded;
    robot_ = std::make_unique<Robot>(Robot::Parts{.reactor = parts_.reactor,
                                                  .events = parts_.events,
                                                  .changer = bay_library_->changer(),
                                                  .library = options_.name});
    const auto looked = co_await robot_->look();
    if (!looked) co_return looked;
    take_inventory(Inventory::kFirst);
    const auto adopted = co_await adopt_recorded_media();
    if (!adopted) co_return adopted;
    const auto saved = co_await shelf_->save();
    if (!saved) co_return saved;
    co_return co_await open_drives();
}

// Adds a drive to units_ when it can be used; until then, administrators cannot name it.
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
            // A crash may have left a cartridge in a drive that is taken down.
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
    check_drive_limits();
    co_return Result<void>{};
}

void TapeLibrary::say_up(const DriveUnit& unit) {
    if (unit.is_down()) return;
    core::emit(parts_.events, core::Level::kInfo, "library.drive_up",
               {{"drive", unit.name()},
                {"serial", unit.drive().serial()},
                {"technology", unit.drive().technology()}});
}

// The technology of the drives of a SCSI library is known only when they have been opened, so that
// the check of the configuration cannot find that their limits are missing.
void TapeLibrary::check_drive_limits() {
    std::map<std::string_view, std::uint64_t> drives;  // By technology; those without limits.
    for (const Unit& each : units_) {
        const io_sched::Technology technology = each.device->technology();
        if (parts_.io.tape_settings().lacks_limits_for(technology)) ++drives[technology];
    }
    for (const auto& [technology, count] : drives) {
        if (without_limits_.contains(technology)) continue;
        core::emit(parts_.events, core::Level::kWarn, "library.no_drive_limits",
                   {{"library", std::string_view(options_.name)},
                    {"technology", technology},
                    {"drives", count}});
    }
    without_limits_.clear();
    for (const auto& [technology, count] : drives) without_limits_.insert(technology);
}

Task<void> TapeLibrary::close_drives(Sessions sessions) {
    for (const Unit& each : units_) co_await parts_.io.remove_drive(*each.device);
    for (const Unit& each : units_) {
        if (sessions == Sessions::kEnd) co_await each.drive->end_session();
        each.measured->figures().is_present.set(0);
    }
    units_.clear();
}

// Tells the scheduler which drives have gone down.
void TapeLibrary::show_drives() {
    for (const Unit& each : units_) {
        if (!each.drive->is_down() || each.is_handled) continue;
        parts_.io.set_drive_state(*each.device, io_sched::DeviceState::kDown);
    }
}

// -- messages to and from the homes --

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
    struct Told {
        std::uint32_t locality = 0;
        RecallNote note;
    };
    std::vector<Told> told;
    bool has_new_disk = false;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        for (bool has_more = true; has_more && !stopping_;) {
            auto job = [](StagingDisks& disks) { return disks.take_news(); };
            auto news = co_await homes_->call_at<StagingNews>(locality, &job);
            if (!news) break;
            has_more = news->has_more;
            has_new_disk = has_new_disk || news->has_new_disk;
            groups_[locality] = std::move(news->groups);
            uncopied_[locality] = std::move(news->uncopied);
            for (const store::Slot slot : news->rooms) {
                const auto waiting = room_queues_.find(slot);
                if (waiting != room_queues_.end()) waiting->second.room_came();
            }
            for (const store::Fid fid : news->ended) {
                end_recall(fid);
                std::erase_if(told, [fid](const Told& each) { return each.note.fid == fid; });
            }
            for (RecallNote& note : news->recalls) told.push_back({locality, std::move(note)});
        }
    }
    if (has_new_disk) {
        // The disks report errors of their own.
        [[maybe_unused]] const auto adopted = co_await adopt_recorded_media();
        [[maybe_unused]] const auto saved = co_await shelf_->save();
    }
    // The oldest recall of all homes comes first.
    core::stable_sort(told, std::less{}, [](const Told& each) {
        return std::pair(each.note.asked_unix_ns, each.note.ticket);
    });
    for (Told& each : told) {
        take_recall(each.locality, std::move(each.note));
        co_await parts_.reactor.maybe_yield();
    }
    count_waiting();
    tell_changed();
}

void TapeLibrary::count_waiting() {
    for (const Pool& pool : pools_) {
        std::uint64_t objects = 0;
        std::uint64_t bytes = 0;
        Instant oldest = kNever;
        for (const auto& of_locality : uncopied_) {
            for (const StagedObjects::Uncopied& each : of_locality) {
                if (each.pool != pool.id) continue;
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
