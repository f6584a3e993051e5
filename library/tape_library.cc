#include "library/tape_library.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "devices/tape/drive_model.h"
#include "library/pending_recall.h"
#include "objects/object_name.h"
#include "store/tape/labels.h"

namespace fopd::library {

namespace {

// How long a library that cannot be opened is left alone.
constexpr Duration kOpenAgain = 30s;

}  // namespace

TapeLibrary::TapeLibrary(const Parts& parts, LibraryOptions options)
    : parts_(parts), options_(std::move(options)), rings_(parts.reactor), changed_(parts.reactor) {
    for (const TapePoolOptions& each : options_.pools) {
        pools_.push_back({.options = each, .id = objects::pool_id(each.name)});
    }
}

TapeLibrary::~TapeLibrary() = default;

void TapeLibrary::start(std::vector<HomeDoors::Door> doors) {
    groups_.resize(doors.size());
    homes_ = std::make_unique<HomeDoors>(parts_.reactor, std::move(doors));
    parts_.reactor.spawn(gate_, run());
}

Task<void> TapeLibrary::stop() {
    stopping_ = true;
    stop_.cancel();
    stop_recalls();
    rings_.wake_all();
    changed_.wake_all();
    co_await gate_.close(parts_.reactor);
    co_await close_drives();
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
    rung_ = true;
    while (!stopping_) {
        if (std::exchange(rung_, false)) {
            co_await show_media_to_homes();
            co_await read_news();
        }
        const Instant next = begin_batches();
        if (rung_ || stopping_) continue;
        // Woken by news, by the end of a batch, and when a group is old enough.
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
        co_await close_drives();
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
        if (model == nullptr) continue;
        const DriveUnit::Parts unit_parts{.reactor = parts_.reactor,
                                          .clock = parts_.clock,
                                          .events = parts_.events,
                                          .drive = *each,
                                          .robot = *robot_,
                                          .shelf = *shelf_,
                                          .node = parts_.node};
        auto unit = std::make_unique<DriveUnit>(unit_parts);
        co_await unit->look_into();
        const io_sched::IoDevice::Drive drive{.number = ++number, .technology = model->technology};
        const auto added = parts_.io.add_drive(drive, unit->executor());
        if (!added) co_return std::unexpected(added.error());
        const auto cartridge = unit->cartridge();
        if (cartridge) parts_.io.set_drive_medium(**added, io_sched::MediumId{*cartridge});
        units_.push_back({.drive = std::move(unit), .device = *added});
        show_drives();
    }
    co_return Result<void>{};
}

Task<void> TapeLibrary::close_drives() {
    for (const Unit& each : units_) co_await parts_.io.remove_drive(*each.device);
    units_.clear();
}

// What a drive has found out about itself becomes known to the scheduler.
void TapeLibrary::show_drives() {
    for (const Unit& each : units_) {
        if (!each.drive->is_down()) continue;
        parts_.io.set_drive_state(*each.device, io_sched::DeviceState::kDown);
    }
}

// Compares the table with what the changer sees.
void TapeLibrary::take_inventory() {
    std::map<std::string, std::string> by_vsn;
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
        const CartridgeId id = known->id;
        const bool was_away = known->state == CartridgeState::kMissing;
        const bool is_labelled = known->generation > 0;
        const std::string vsn = each.barcode.substr(0, store::Vsn::kCharacters);
        const bool is_double = !by_vsn.emplace(vsn, each.barcode).second;
        if (is_double) {
            shelf_->set_state(id, CartridgeState::kDisabled,
                              "another cartridge has the same first six characters");
        } else if (was_away) {
            shelf_->set_state(id, is_labelled ? CartridgeState::kOk : CartridgeState::kBlank, "");
        } else {
            shelf_->show(id);
        }
    }
    for (const Cartridge& each : std::vector(shelf_->table().all())) {
        const bool stays_away = each.state == CartridgeState::kExported ||
                                each.state == CartridgeState::kDisabled ||
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
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [](StagingDisks& disks) { return disks.recorded_media(); };
        auto answer = co_await homes_->call_at<Result<RecordedMedia>>(locality, &job);
        if (!answer) co_return std::unexpected(answer.error());
        if (!*answer) co_return std::unexpected(answer->error());
        for (const auto& [vsn, recorded] : **answer) {
            const std::string_view text(vsn.data(), vsn.size());
            for (const Cartridge& each : std::vector(shelf_->table().all())) {
                if (!each.barcode.starts_with(text)) continue;
                if (each.generation < recorded.generation) adopt(each.id, recorded);
            }
        }
    }
    co_return Result<void>{};
}

void TapeLibrary::adopt(CartridgeId id, const RecordedMedium& recorded) {
    const Pool* const pool = find_pool(recorded.pool);
    Cartridge& cartridge = *shelf_->to_change().change(id);
    cartridge.generation = recorded.generation;
    cartridge.vsn = cartridge.barcode.substr(0, store::Vsn::kCharacters);
    cartridge.pool = pool == nullptr ? std::string() : pool->options.name;
    cartridge.files = 0;
    cartridge.end_block = 1;
    cartridge.index_file = 0;
    cartridge.index_block = 0;
    cartridge.used_bytes = 0;
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
        store::VsnText vsn{};
        std::ranges::copy(each.vsn, vsn.begin());
        const bool is_good = is_readable(each.state) && each.state != CartridgeState::kSuspect;
        KnownMedium& known = media[vsn];
        if (is_good || known.generation == 0) {
            known = {.generation = each.generation, .is_good = is_good};
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
    changed_.wake_all();
}

TapeLibrary::Pool* TapeLibrary::find_pool(objects::PoolId id) {
    const auto found = std::ranges::find(pools_, id, &Pool::id);
    return found == pools_.end() ? nullptr : &*found;
}

}  // namespace fopd::library
