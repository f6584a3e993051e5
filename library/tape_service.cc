// The operations of the library for fops and administrators.

#include <algorithm>
#include <utility>

#include "library/awaited_tape.h"
#include "library/doubles.h"
#include "library/drive_handling.h"
#include "library/pending_recall.h"
#include "library/tape_library.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

using Kind = MediaOutcome::Kind;

// The interval of checks whether the operation of a drive has ended.
constexpr Duration kDriveLook = 1s;

std::string objects_text(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " object" : " objects");
}

// Cancels `second` when `first` is cancelled. Both outlive it.
class CancelsBoth final : core::CancelHook {
public:
    CancelsBoth(core::CancelSource& first, core::CancelSource& second)
        : CancelHook(&on_cancel), second_(second) {
        if (first.cancelled()) {
            second_.cancel();
        } else {
            first.add(*this);
        }
    }

private:
    static void on_cancel(core::CancelHook& hook) {
        static_cast<CancelsBoth&>(hook).second_.cancel();
    }

    core::CancelSource& second_;
};

}  // namespace

// -- sync --

Task<Result<void>> TapeLibrary::sync(std::string pool, core::WaitOptions wait) {
    Pool* const tape = find_pool(objects::pool_id(pool));
    if (tape == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "the pool is not a tape pool of this node"});
    }
    const objects::PoolId id = tape->id;
    Left left(homes_->count());
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [id](StagingDisks& disks) { return disks.not_on_tape(id); };
        auto fids = co_await homes_->run_at<std::vector<store::Fid>>(locality, &job);
        if (!fids) co_return std::unexpected(fids.error());
        left[locality] = *std::move(fids);
    }
    ++tape->syncs;
    const auto done = co_await wait_for_copies(tape, &left, FewDrives::kFail, wait);
    --tape->syncs;
    co_return done;
}

bool TapeLibrary::are_all_drives_down() const {
    return std::ranges::all_of(units_, [](const Unit& each) { return each.drive->is_down(); });
}

const char* TapeLibrary::why_not_written(const Pool& pool) const {
    if (pool.is_short_of_tape) return "no cartridge has room for some objects, and none is blank";
    if (pool.is_short_of_drives) {
        return are_all_drives_down() ? "all drives are down"
                                     : "fewer drives can be used than the pool has copies";
    }
    return "some objects could not be written to tape; the log says which, and why";
}

// What failed before it began does not count.
Task<Result<void>> TapeLibrary::wait_for_copies(Pool* pool, Left* left, FewDrives few_drives,
                                                core::WaitOptions wait) {
    const std::uint64_t failures_before = pool->failures_ever;
    const std::uint64_t stuck_before = stuck_count_;
    pool->not_before = {};
    ring();
    for (;;) {
        const std::uint64_t seen = changes_;
        bool is_empty = true;
        bool all_given_up = true;
        for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
            std::vector<store::Fid>& fids = (*left)[locality];
            if (fids.empty()) continue;
            auto job = [&fids](StagingDisks& disks) {
                return disks.still_not_on_tape(std::move(fids));
            };
            auto rest = co_await homes_->run_at<StagingDisks::NotOnTape>(locality, &job);
            if (!rest) co_return std::unexpected(rest.error());
            fids = std::move(rest->fids);
            is_empty = is_empty && fids.empty();
            all_given_up = all_given_up && rest->all_given_up;
        }
        if (is_empty) co_return Result<void>{};
        if (stopping_) {
            co_return std::unexpected(Error{.code = Errc::kClosed, .context = "the library stops"});
        }
        const std::uint64_t failures =
            std::min(pool->failures, pool->failures_ever - failures_before);
        bool is_in_vain = failures >= kFailuresMax || all_given_up;
        auto stuck = stuck_groups(*pool, stuck_before, few_drives);
        if (!is_in_vain && !stuck.empty()) is_in_vain = co_await are_stuck(left, std::move(stuck));
        if (is_in_vain) {
            co_return std::unexpected(Error{.code = Errc::kIo, .context = why_not_written(*pool)});
        }
        // The answers of the first homes may be outdated.
        if (changes_ != seen) continue;
        const auto woken = co_await changed_.wait(wait);
        if (!woken) co_return woken;
    }
}

// The groups that found no cartridge, or too few drives, and are not being tried again.
std::set<StagedObjects::GroupKey> TapeLibrary::stuck_groups(const Pool& pool, std::uint64_t since,
                                                            FewDrives few_drives) const {
    std::set<StagedObjects::GroupKey> groups;
    for (const auto& [key, turn] : turns_) {
        const bool waits = turn.lacks_drives && few_drives == FewDrives::kWait;
        if (key.pool != pool.id || turn.stuck <= since || waits || writing_.contains(key)) continue;
        groups.insert(key);
    }
    return groups;
}

// Whether none of the objects can be written as things are.
Task<bool> TapeLibrary::are_stuck(const Left* left, std::set<StagedObjects::GroupKey> groups) {
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        const std::vector<store::Fid>& fids = (*left)[locality];
        auto job = [&fids, &groups](StagingDisks& disks) {
            return std::ranges::all_of(fids, [&](store::Fid fid) {
                const StagedObjects::GroupKey* const group = disks.staged().group_of(fid);
                return disks.staged().is_given_up(fid) ||
                       (group != nullptr && groups.contains(*group));
            });
        };
        const auto stuck = co_await homes_->call_at<bool>(locality, &job);
        if (!stuck || !*stuck) co_return false;
    }
    co_return true;
}

// -- lists --

std::vector<Cartridge> TapeLibrary::media() const {
    return shelf_ == nullptr ? std::vector<Cartridge>() : shelf_->table().all();
}

std::vector<DriveRow> TapeLibrary::drives() const {
    std::vector<DriveRow> rows;
    for (const Unit& each : units_) {
        const DriveUnit& unit = *each.drive;
        const Cartridge* const cartridge =
            unit.cartridge() ? shelf_->find(*unit.cartridge()) : nullptr;
        rows.push_back({.name = std::string(unit.name()),
                        .serial = std::string(unit.drive().serial()),
                        .technology = std::string(unit.drive().technology()),
                        .barcode = cartridge == nullptr ? std::string() : cartridge->barcode,
                        .activity = std::string(to_string(unit.activity())),
                        .reason = unit.down_reason(),
                        .mounts = each.measured->figures().mounts.get()});
    }
    return rows;
}

// Open from the time when the first drive was added, which follows the inventory.
std::optional<std::string> TapeLibrary::why_not_open() const {
    if (is_ready()) return std::nullopt;
    return not_open_;
}

LibraryCondition TapeLibrary::condition() const {
    LibraryCondition condition{.name = options_.name, .not_open = why_not_open().value_or("")};
    if (units_.empty()) return condition;
    condition.changer_fault = robot_->fault();
    condition.drives_down = drives();
    std::erase_if(condition.drives_down, [](const DriveRow& each) { return each.reason.empty(); });
    for (const Cartridge& each : shelf_->table().all()) {
        const bool is_bad =
            each.state == CartridgeState::kSuspect || each.state == CartridgeState::kForeign ||
            each.state == CartridgeState::kFailed || each.state == CartridgeState::kMissing ||
            each.state == CartridgeState::kDisabled;
        if (is_bad && each.generation > 0) condition.bad_media.push_back(each);
    }
    return condition;
}

TapeLibrary::Unit* TapeLibrary::find_unit(std::string_view drive) {
    const auto found = std::ranges::find_if(
        units_, [drive](const Unit& each) { return each.drive->name() == drive; });
    return found == units_.end() ? nullptr : &*found;
}

const TapeLibrary::Unit* TapeLibrary::unit_with(CartridgeId cartridge) const {
    const auto found = std::ranges::find_if(
        units_, [cartridge](const Unit& each) { return each.drive->cartridge() == cartridge; });
    return found == units_.end() ? nullptr : &*found;
}

// -- cartridges --

// Runs while no other request uses the cartridge, so that an earlier batch has recorded its copies:
// checks what would be lost, forgets the copies, and labels the cartridge.
class TapeLibrary::FormatJob final : public TapeJob {
public:
    FormatJob(TapeLibrary& library, FormatWish wish) : library_(library), wish_(std::move(wish)) {}

    Task<Result<void>> run(DriveUnit* drive, CartridgeId id) override {
        const Cartridge cartridge = *drive->shelf().find(id);
        outcome_ = co_await library_.may_format(&cartridge, wish_.force);
        // A refusal is not a failure of the drive, so no other drive is tried.
        if (outcome_.kind != Kind::kDone) co_return Result<void>{};
        const auto can = co_await drive->can_format();
        const bool refuses =
            !can && (can.error().code == Errc::kDenied || can.error().code == Errc::kInvalid);
        if (refuses) {
            const std::string reason = can.error().context;
            outcome_ = library::outcome(
                Kind::kRefused, "cartridge " + cartridge.barcode + " is not formatted: " + reason);
            co_return Result<void>{};
        }
        if (!can) co_return can;
        outcome_ = co_await may_lose_other(drive);
        if (outcome_.kind != Kind::kDone) co_return Result<void>{};
        outcome_ = co_await library_.forget_copies(&cartridge, wish_.force);
        if (outcome_.kind != Kind::kDone) co_return Result<void>{};
        co_return co_await drive->format(wish_.pool);
    }
    bool takes_any_label() const override { return wish_.force != FormatForce::kRefuseData; }
    const MediaOutcome& outcome() const { return outcome_; }

private:
    // Whoever confirms that the data of a cartridge may be lost does not speak of another one,
    // whose barcode was exchanged with its.
    Task<MediaOutcome> may_lose_other(DriveUnit* drive) {
        const auto id = drive->other_on_tape();
        if (!id) co_return MediaOutcome{};
        const Cartridge other = *drive->shelf().find(*id);
        const auto there = co_await library_.count_copies(&other);
        if (!there) co_return failed_outcome(there.error());
        if (there->objects == 0) co_return MediaOutcome{};
        co_return library::outcome(Kind::kRefused, "cartridge " + wish_.barcode +
                                                       " is not formatted: it has the "
                                                       "label of cartridge " +
                                                       other.barcode + " with copies of " +
                                                       objects_text(there->objects));
    }

    TapeLibrary& library_;
    const FormatWish wish_;
    MediaOutcome outcome_;
};

// A format whose request is in progress.
class TapeLibrary::QueuedFormat {
public:
    // All but the row outlive it.
    QueuedFormat(TapeLibrary& library, FormatRow row, const AwaitedTape& request,
                 core::CancelSource& cancel)
        : library_(library), row_(std::move(row)), request_(request), cancel_(cancel) {
        library_.formats_.push_back(this);
    }
    ~QueuedFormat() { std::erase(library_.formats_, this); }
    QueuedFormat(const QueuedFormat&) = delete;
    QueuedFormat& operator=(const QueuedFormat&) = delete;

    FormatRow row() const {
        FormatRow shown = row_;
        shown.has_begun = !request_.waiting();
        return shown;
    }
    bool is_cancelled() const { return is_cancelled_; }
    void cancel() {
        is_cancelled_ = true;
        cancel_.cancel();
    }

private:
    TapeLibrary& library_;
    const FormatRow row_;
    const AwaitedTape& request_;
    core::CancelSource& cancel_;
    bool is_cancelled_ = false;
};

const Cartridge* TapeLibrary::known_cartridge(std::string_view barcode) const {
    return is_ready() ? shelf_->table().find(barcode) : nullptr;
}

// Makes an inventory if the cartridge is unknown or missing. Null: the table does not have it.
Task<const Cartridge*> TapeLibrary::find_medium(std::string barcode) {
    if (!is_ready()) co_return nullptr;
    const Cartridge* const known = shelf_->table().find(barcode);
    if (known != nullptr && known->state != CartridgeState::kMissing) co_return known;
    co_await look_again();
    co_return shelf_->table().find(barcode);
}

Task<MediaOutcome> TapeLibrary::format(FormatWish wish) {
    const Cartridge* const found = co_await find_medium(wish.barcode);
    if (found == nullptr) co_return no_such_medium(wish.barcode);
    const CartridgeId id = found->id;
    Pool* const pool = find_pool(objects::pool_id(wish.pool));
    if (pool == nullptr) {
        co_return outcome(Kind::kRefused, "pool " + wish.pool + " is not a tape pool of this node");
    }
    const Cartridge cartridge = *found;
    const auto may = co_await may_format(&cartridge, wish.force);
    if (may.kind != Kind::kDone) co_return may;
    // Otherwise it would be done much later, when the administrator does not expect it any more.
    if (are_all_drives_down()) {
        co_return outcome(Kind::kRefused, "all drives are down");
    }
    core::CancelSource cancel;
    CancelsBoth stopped(stop_, cancel);
    std::optional<CancelsBoth> given_up;
    if (wish.cancel != nullptr) given_up.emplace(*wish.cancel, cancel);
    const std::string pool_name = wish.pool;
    FormatJob job(*this, std::move(wish));
    const AwaitedTape::Scheduler scheduler{.reactor = parts_.reactor, .main = parts_.io};
    const AwaitedTape::Options options{
        .type = io_sched::IoType::kFormat, .pool = pool->id, .cancel = &cancel};
    std::vector<io_sched::IoPart> where{{.medium = io_sched::MediumId{id}}};
    AwaitedTape request(scheduler, job, options, std::move(where));
    FormatRow row{.barcode = cartridge.barcode, .pool = pool_name};
    row.asked_at = parts_.reactor.now();
    QueuedFormat queued(*this, std::move(row), request, cancel);
    const auto formatted = co_await request;
    show_drives();
    ring();
    if (job.outcome().kind != Kind::kDone) co_return job.outcome();
    const bool is_given_up = !formatted && formatted.error().code == Errc::kCancelled;
    if (is_given_up && !stopping_) {
        const std::string what =
            queued.is_cancelled() ? "it was cancelled" : "the request was given up";
        co_return outcome(Kind::kFailed, "cartridge " + cartridge.barcode + " is not formatted: " +
                                             what + " while it waited for a drive");
    }
    co_return outcome(formatted);
}

std::vector<FormatRow> TapeLibrary::formats() const {
    std::vector<FormatRow> rows;
    for (const QueuedFormat* const each : formats_) rows.push_back(each->row());
    return rows;
}

Task<MediaOutcome> TapeLibrary::cancel_format(std::string barcode) {
    bool has_begun = false;
    bool is_cancelled = false;
    for (QueuedFormat* const each : std::vector(formats_)) {
        const FormatRow row = each->row();
        if (row.barcode != barcode) continue;
        has_begun = has_begun || row.has_begun;
        is_cancelled = is_cancelled || !row.has_begun;
        if (!row.has_begun) each->cancel();
    }
    if (is_cancelled) co_return MediaOutcome{};
    const std::string which = "cartridge " + barcode;
    if (!has_begun) co_return outcome(Kind::kNoSuchMedium, "no format of " + which + " waits");
    co_return outcome(Kind::kRefused, "the format of " + which + " has begun, and is finished");
}

Task<MediaOutcome> TapeLibrary::may_format(const Cartridge* cartridge, FormatForce force) {
    const std::string refusal = why_not_format(*cartridge, force);
    if (!refusal.empty()) co_return outcome(Kind::kRefused, refusal);
    if (force == FormatForce::kLoseObjects) co_return MediaOutcome{};
    // Without force, only a blank tape is formatted, so it has no copies if none are known.
    const bool is_new = cartridge->generation == 0 && force == FormatForce::kRefuseData;
    const auto there = co_await count_copies(cartridge);
    if (!there && there.error().code == Errc::kBusy && is_new) co_return MediaOutcome{};
    if (!there && there.error().code == Errc::kBusy) {
        co_return outcome(Kind::kRefused, "cartridge " + cartridge->barcode +
                                              " may have copies of objects on a disk that is "
                                              "missing; bring the disk back, or confirm with "
                                              "--force --yes that these objects may be lost");
    }
    if (!there) co_return failed_outcome(there.error());
    const std::string has =
        "cartridge " + cartridge->barcode + " has copies of " + objects_text(there->objects) + "; ";
    if (there->only_here > 0) {
        co_return outcome(Kind::kRefused, has + objects_text(there->only_here) +
                                              " with no other copy would be lost for good; "
                                              "--force --yes confirms that");
    }
    if (force == FormatForce::kForgetData) co_return MediaOutcome{};
    if (there->objects > 0) {
        co_return outcome(Kind::kRefused, has + "none would be lost; --force forgets the copies");
    }
    if (cartridge->files > 0 && cartridge->repack != Repack::kDone) {
        co_return outcome(Kind::kRefused,
                          "cartridge " + cartridge->barcode +
                              " has data, but no live copies; --force discards the data");
    }
    co_return MediaOutcome{};
}

std::string TapeLibrary::why_not_format(const Cartridge& cartridge, FormatForce force) const {
    const std::string name = "cartridge " + cartridge.barcode;
    bool is_awaited = false;
    recalls_.for_each([&](const Recall& recall) {
        is_awaited = is_awaited || recall.cartridge() == cartridge.id;
    });
    if (is_awaited) return name + " is needed by a recall";
    const bool is_there =
        is_readable(cartridge.state) || cartridge.state == CartridgeState::kBlank ||
        cartridge.state == CartridgeState::kForeign || cartridge.state == CartridgeState::kFailed;
    if (!is_there) return name + " is " + std::string(to_string(cartridge.state));
    if (cartridge.repack == Repack::kRunning) return name + " is being repacked";
    if (cartridge.rescue == Rescue::kRunning) return name + " is being rescued";
    if (force == FormatForce::kRefuseData && cartridge.state == CartridgeState::kForeign) {
        return name + " has foreign data: " + cartridge.reason;
    }
    return {};
}

Task<Result<CopiesThere>> TapeLibrary::count_copies(const Cartridge* cartridge) {
    CopiesThere all;
    const store::VsnText vsn = cartridge->vsn_text();
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [vsn](StagingDisks& disks) { return disks.count_copies(vsn); };
        const auto there = co_await homes_->run_at<CopiesThere>(locality, &job);
        if (!there) co_return std::unexpected(there.error());
        all.objects += there->objects;
        all.only_here += there->only_here;
        for (const std::string& each : there->names) {
            if (all.names.size() < CopiesThere::kNamesMax) all.names.push_back(each);
        }
    }
    co_return all;
}

Task<MediaOutcome> TapeLibrary::forget_copies(const Cartridge* cartridge, FormatForce force) {
    const auto loss = force == FormatForce::kLoseObjects ? store::Volume::Loss::kAccepted
                                                         : store::Volume::Loss::kRefused;
    const store::VsnText vsn = cartridge->vsn_text();
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [vsn, loss](StagingDisks& disks) { return disks.forget_cartridge(vsn, loss); };
        const auto forgotten = co_await homes_->run_at<void>(locality, &job);
        if (!forgotten) co_return outcome(forgotten);
    }
    co_return MediaOutcome{};
}

std::string TapeLibrary::why_not_load(const Unit& unit, const Cartridge& cartridge) const {
    const std::string name = "drive " + std::string(unit.drive->name());
    const std::string medium = "cartridge " + cartridge.barcode;
    const bool is_out = cartridge.state == CartridgeState::kExported ||
                        cartridge.state == CartridgeState::kDisabled;
    if (is_out) {
        return medium + " is " + std::string(to_string(cartridge.state)) + ": " + cartridge.reason;
    }
    if (unit.drive->is_down()) return name + " is down: " + unit.drive->down_reason();
    if (unit.is_handled || !unit.device->is_idle()) return name + " is in use";
    const Unit* const other = unit_with(cartridge.id);
    if (other == nullptr || other == &unit) return {};
    return medium + " is in drive " + std::string(other->drive->name());
}

Task<MediaOutcome> TapeLibrary::load(LoadWish wish) {
    Unit* const unit = find_unit(wish.drive);
    if (unit == nullptr) {
        co_return outcome(Kind::kNoSuchDrive, "there is no drive " + wish.drive);
    }
    const Cartridge* const cartridge = co_await find_medium(wish.barcode);
    if (cartridge == nullptr) co_return no_such_medium(wish.barcode);
    const CartridgeId id = cartridge->id;
    const std::string refusal = why_not_load(*unit, *cartridge);
    if (!refusal.empty()) co_return outcome(Kind::kRefused, refusal);
    const Handling handling(*this, *unit);
    unit->loads = id;
    const auto mounted = co_await unit->drive->mount(id);
    unit->loads = 0;
    co_return outcome(mounted);
}

Task<MediaOutcome> TapeLibrary::unload(std::string drive) {
    Unit* const unit = find_unit(drive);
    if (unit == nullptr) co_return outcome(Kind::kNoSuchDrive, "there is no drive " + drive);
    if (unit->is_handled || !unit->device->is_idle()) {
        co_return outcome(Kind::kRefused, "drive " + drive + " is in use");
    }
    const Handling handling(*this, *unit);
    const auto unloaded = co_await unit->drive->unload();
    co_return outcome(unloaded);
}

// -- drives --

Task<std::vector<DriveRow>> TapeLibrary::unload_all(Instant deadline) {
    // Until the library is open, it adds one drive after another, with the cartridge in it.
    while (opening_ == Opening::kRuns) {
        const auto woken = co_await changed_.wait({.deadline = deadline, .cancel = &stop_});
        if (!woken) break;
    }
    for (Unit& each : units_) {
        if (std::exchange(each.is_emptying, true)) continue;
        parts_.reactor.spawn(gate_, empty(&each, deadline));
    }
    const auto is_emptying = [](const Unit& each) { return each.is_emptying; };
    while (std::ranges::any_of(units_, is_emptying)) {
        const auto woken = co_await changed_.wait({.deadline = deadline, .cancel = &stop_});
        if (!woken) break;
    }
    std::vector<DriveRow> left = drives();
    std::erase_if(left, [this](const DriveRow& each) {
        return each.barcode.empty() && !find_unit(each.name)->is_emptying;
    });
    co_return left;
}

Task<void> TapeLibrary::empty(Unit* unit, Instant deadline) {
    bool waits = true;
    while (unit->is_handled && waits && !unit->rests) {
        const auto slept = co_await parts_.reactor.sleep_for(kDriveLook, &stop_);
        waits = slept.has_value() && parts_.reactor.now() < deadline;
    }
    if (waits && !unit->rests) {
        unit->rests = true;
        resting_.push_back(std::make_unique<Handling>(*this, *unit));
    }
    while (waits && !unit->device->is_idle()) {
        const auto slept = co_await parts_.reactor.sleep_for(kDriveLook, &stop_);
        waits = slept.has_value() && parts_.reactor.now() < deadline;
    }
    if (waits) {
        // What went wrong, the drive has said.
        [[maybe_unused]] const auto unloaded = co_await unit->drive->unload();
    }
    unit->is_emptying = false;
    tell_changed();
}

Task<MediaOutcome> TapeLibrary::take_drive_down(std::string drive) {
    Unit* const unit = find_unit(drive);
    if (unit == nullptr) co_return outcome(Kind::kNoSuchDrive, "there is no drive " + drive);
    if (unit->is_handled) co_return outcome(Kind::kRefused, "drive " + drive + " is in use");
    // The scheduler begins no further operation on the drive.
    const Handling handling(*this, *unit);
    const std::string serial(unit->drive->drive().serial());
    shelf_->to_change().set_drive_down(serial, true);
    const auto saved = co_await shelf_->save();
    if (!saved) {
        shelf_->to_change().set_drive_down(serial, false);
        co_return outcome(saved);
    }
    while (!unit->device->is_idle()) {
        const auto slept = co_await parts_.reactor.sleep_for(kDriveLook, &stop_);
        if (!slept) co_return outcome(Kind::kFailed, "the node stops; the drive stays down");
    }
    Result<void> unloaded;
    // An earlier unload may have left the cartridge where the changer takes it.
    const devices::LibraryElement* const element = robot_->drive_element(serial);
    const bool is_full = element != nullptr && element->full;
    if (unit->drive->cartridge() || is_full) {
        auto unloading = co_await unit->drive->unload();
        unloaded = std::move(unloading);
    }
    unit->drive->take_down();
    ring();
    co_return outcome(unloaded);
}

Task<MediaOutcome> TapeLibrary::bring_drive_up(std::string drive) {
    Unit* const unit = find_unit(drive);
    if (unit == nullptr) co_return outcome(Kind::kNoSuchDrive, "there is no drive " + drive);
    if (unit->is_handled || !unit->device->is_idle()) {
        co_return outcome(Kind::kRefused, "drive " + drive + " is in use");
    }
    if (!unit->drive->is_down()) co_return MediaOutcome{};
    const Handling handling(*this, *unit);
    const std::string serial(unit->drive->drive().serial());
    const bool was_taken_down = shelf_->table().is_drive_down(serial);
    shelf_->to_change().set_drive_down(serial, false);
    const auto saved = co_await shelf_->save();
    if (!saved) {
        shelf_->to_change().set_drive_down(serial, was_taken_down);
        co_return outcome(saved);
    }
    unit->drive->bring_up();
    say_up(*unit->drive);
    ring();
    co_return MediaOutcome{};
}

}  // namespace fopd::library
