#include "library/drive_unit.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "store/tape/cartridge.h"

namespace fopd::library {

namespace {

// Whether another drive may succeed: an error of the changer may concern one element only.
bool may_work_elsewhere(const Error& error) {
    return devices::is_drive_fault(error) || error.code == Errc::kUnsupported;
}

TapeOutcome failure(bool is_of_tape, const Result<void>& result) {
    using Kind = TapeOutcome::Kind;
    return {.kind = is_of_tape ? Kind::kTapeError : Kind::kOtherError, .result = result};
}

// The scheduler does not see the work change.
TapeJob& job_of(const io_sched::IoRequest& request) {
    return const_cast<TapeRequest&>(static_cast<const TapeRequest&>(request));
}

}  // namespace

store::TapeIdentity DriveUnit::identity_of(const Cartridge& cartridge) const {
    return {.vsn = *store::Vsn::from_barcode(cartridge.barcode),
            .node = cartridge.node_on_tape.value_or(parts_.node),
            .generation = std::max(cartridge.generation, 1U)};
}

// -- requests --

class DriveUnit::Executor final : public io_sched::IoExecutor {
public:
    explicit Executor(DriveUnit& unit) : unit_(unit) {}

    Task<Result<void>> execute(const io_sched::IoRequest& request,
                               const io_sched::IoPart& part) override {
        return unit_.execute(&request, &part);
    }
    Content content() const override {
        Content content{.is_down = unit_.is_down(), .fails_everywhere = unit_.fails_everywhere_};
        if (unit_.cartridge_) {
            content.medium = io_sched::MediumId{*unit_.cartridge_};
            content.position = unit_.block_ * devices::kTapeBlockMax;
        }
        return content;
    }
    void could_not_execute(const io_sched::IoRequest& request) override {
        job_of(request).could_not_run();
    }
    Task<Result<void>> take_out() override { return unit_.hand_over(); }
    Task<Result<void>> execute_joined(std::span<const io_sched::IoShare> /*writes*/) override {
        ENSURE(false);  // A drive does one operation at a time.
        co_return Result<void>{};
    }

private:
    DriveUnit& unit_;
};

std::unique_ptr<io_sched::IoExecutor> DriveUnit::executor() {
    return std::make_unique<Executor>(*this);
}

Task<Result<void>> DriveUnit::execute(const io_sched::IoRequest* request,
                                      const io_sched::IoPart* part) {
    const auto id = static_cast<CartridgeId>(part->medium);
    const io_sched::IoType type = request->type;
    TapeJob& job = job_of(*request);
    if (is_down()) {
        fails_everywhere_ = false;
        job.could_not_run();
        co_return std::unexpected(Error{.code = Errc::kIo, .context = "the drive is down"});
    }
    busy_bytes_ = part->size_bytes;
    set_activity(DriveActivity::kExchanging);
    auto outcome = co_await bring(id, job.takes_any_label() ? Labels::kAny : Labels::kRight);
    const bool is_there = outcome.result.has_value();
    if (is_there) {
        set_activity(type == io_sched::IoType::kRead ? DriveActivity::kReading
                                                     : DriveActivity::kWriting);
        outcome = co_await run(&job, type, id);
        const bool writes = type == io_sched::IoType::kWrite && !job.ends_session();
        if (writes) session_at_ = parts_.reactor.now();
    } else {
        job.could_not_run();
    }
    set_activity(DriveActivity::kIdle);
    busy_bytes_ = 0;
    // The scheduler has counted the room that the request might have needed.
    if (parts_.shelf.find(id) != nullptr) parts_.shelf.show(id);
    judge(id, type, outcome);
    co_await note_block();
    fails_everywhere_ = outcome.kind == TapeOutcome::Kind::kOtherError &&
                        (is_there || !may_work_elsewhere(outcome.result.error()));
    co_return outcome.result;
}

// Where it is after a failure is not worth asking a drive that may not answer.
Task<void> DriveUnit::note_block() {
    block_ = 0;
    if (!cartridge_ || !parts_.drive.loaded() || parts_.drive.trial().has_failed) co_return;
    const auto position = co_await parts_.drive.position();
    if (position) block_ = position->block;
}

Task<TapeOutcome> DriveUnit::bring(CartridgeId id, Labels labels) {
    const auto mounted = co_await mount(id, labels);
    if (mounted) co_return TapeOutcome{};
    co_return failure(did_not_load_ || parts_.drive.trial().has_failed, mounted);
}

Task<TapeOutcome> DriveUnit::run(TapeJob* job, io_sched::IoType type, CartridgeId id) {
    using Kind = TapeOutcome::Kind;
    parts_.drive.begin_trial();
    const auto done = co_await job->run(this, id);
    const MeasuredDrive::Trial& trial = parts_.drive.trial();
    if (!done) co_return failure(trial.has_failed, done);
    const bool has_worked = type == io_sched::IoType::kRead ? trial.has_read : trial.has_synced;
    co_return TapeOutcome{.kind = has_worked ? Kind::kWorked : Kind::kNothingDone, .result = {}};
}

void DriveUnit::say_failed(CartridgeId id, std::string_view operation, const TapeOutcome& outcome) {
    const bool is_of_tape = outcome.kind == TapeOutcome::Kind::kTapeError;
    if (is_of_tape) parts_.drive.figures().failures.add(1);
    const Cartridge* const cartridge = parts_.shelf.find(id);
    const std::string barcode = cartridge == nullptr ? std::string() : cartridge->barcode;
    const std::string reason = describe(outcome.result.error());
    core::emit(parts_.events, core::Level::kWarn, "library.operation_failed",
               {{"drive", name()},
                {"medium", std::string_view(barcode)},
                {"operation", operation},
                {"origin", is_of_tape ? std::string_view("tape") : std::string_view("other")},
                {"reason", std::string_view(reason)}});
}

// An error may be the fault of the drive or of the cartridge. Neither is taken out of use before an
// operation with another drive or another cartridge has shown which one is at fault.
void DriveUnit::judge(CartridgeId id, io_sched::IoType type, const TapeOutcome& outcome) {
    if (outcome.kind == TapeOutcome::Kind::kWorked) parts_.blame.worked(name(), id);
    if (outcome.result) return;
    forget_positions();
    say_failed(id, io_sched::kIoTypeNames[static_cast<std::size_t>(type)], outcome);
    const bool is_damage = cartridge_ == id && type == io_sched::IoType::kRead &&
                           outcome.result.error().code == Errc::kCorrupt;
    if (is_damage) return note_damage(id, describe(outcome.result.error()));
    Cartridge* const changed = parts_.shelf.to_change().change(id);
    if (outcome.kind != TapeOutcome::Kind::kTapeError || changed == nullptr) return;
    ++changed->failures;
    const std::string reason = describe(outcome.result.error());
    const Blame::Verdict verdict = parts_.blame.failed(name(), id);
    if (verdict == Blame::Verdict::kDrive) go_down(reason);
    if (verdict == Blame::Verdict::kCartridge) blame_cartridge(id, type, reason);
    // If there is no other drive to decide, writes use another cartridge.
    const bool is_bad =
        verdict == Blame::Verdict::kOpen && type == io_sched::IoType::kWrite &&
        changed->state == CartridgeState::kOk &&
        parts_.blame.open_failures(name(), id) >= parts_.blame.limits().cartridge_failures;
    const std::string why = std::string(did_not_load_ ? kDoesNotLoad : "") + reason;
    if (is_bad) parts_.shelf.set_state(id, CartridgeState::kReadOnly, why);
}

// A drive checks all data that it reads, so damage is not its fault; but another drive may still be
// able to read these data.
void DriveUnit::note_damage(CartridgeId id, std::string_view reason) {
    Cartridge* const cartridge = parts_.shelf.to_change().change(id);
    if (cartridge == nullptr) return;
    ++cartridge->failures;
    const bool is_sure = parts_.blame.found_damage(name(), id);
    const bool may_be_suspect =
        is_readable(cartridge->state) && cartridge->state != CartridgeState::kSuspect;
    if (!is_sure || !may_be_suspect) return;
    parts_.shelf.set_state(id, CartridgeState::kSuspect,
                           "two drives find its data damaged: " + std::string(reason));
}

void DriveUnit::blame_cartridge(CartridgeId id, io_sched::IoType type, std::string_view reason) {
    const CartridgeState state = parts_.shelf.find(id)->state;
    const bool is_blank = state == CartridgeState::kBlank;
    if (!is_blank && !is_readable(state)) return;
    const std::string why = std::string(did_not_load_ ? kDoesNotLoad : "") + std::string(reason);
    if (is_blank) {
        parts_.shelf.set_state(id, CartridgeState::kFailed, why);
    } else if (did_not_load_ || type == io_sched::IoType::kRead) {
        // A later attempt may still read its data.
        parts_.shelf.set_state(id, CartridgeState::kSuspect, why);
    } else if (state == CartridgeState::kOk) {
        parts_.shelf.set_state(id, CartridgeState::kReadOnly, reason);
    }
}

void DriveUnit::take_down() {
    down_reason_ = "an administrator has taken it down";
    parts_.robot.note_down(parts_.drive.serial());
    core::emit(parts_.events, core::Level::kInfo, "library.drive_taken_down", {{"drive", name()}});
    set_activity(DriveActivity::kDown);
}

void DriveUnit::bring_up() {
    down_reason_.clear();
    parts_.robot.note_up(parts_.drive.serial());
    parts_.blame.forget(name());
    set_activity(DriveActivity::kIdle);
}

void DriveUnit::go_down(std::string_view reason) {
    if (is_down()) return;
    down_reason_ = reason;
    parts_.robot.note_down(parts_.drive.serial());
    set_activity(DriveActivity::kDown);
    core::emit(parts_.events, core::Level::kError, "library.drive_down",
               {{"drive", name()}, {"reason", reason}});
}

// A drive that is down stays so.
void DriveUnit::set_activity(DriveActivity activity) {
    activity_ = is_down() ? DriveActivity::kDown : activity;
    busy_since_ = parts_.reactor.now();
    parts_.drive.figures().activity.set(static_cast<std::uint64_t>(activity_));
}

// -- cartridges --

Task<Result<void>> DriveUnit::mount(CartridgeId id) {
    set_activity(DriveActivity::kExchanging);
    const auto mounted = co_await mount(id, Labels::kRight);
    set_activity(DriveActivity::kIdle);
    if (!mounted) say_failed(id, "load", failure(did_not_load_ || has_failed(), mounted));
    co_return mounted;
}

Task<Result<void>> DriveUnit::mount(CartridgeId id, Labels labels) {
    did_not_load_ = false;
    parts_.drive.begin_trial();
    if (cartridge_ == id) {
        if (label_is_right_ || labels == Labels::kAny) co_return Result<void>{};
        co_return co_await check_label(id);
    }
    co_await end_session();
    const auto unloaded = co_await take_out();
    // Failures so far concern the cartridge that was taken out.
    parts_.drive.begin_trial();
    if (!unloaded) co_return unloaded;
    if (is_down()) {
        co_return std::unexpected(Error{.code = Errc::kIo, .context = "the drive is down"});
    }
    const Cartridge* const cartridge = parts_.shelf.find(id);
    if (cartridge == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "there is no such cartridge"});
    }
    const Robot::Load load{.barcode = cartridge->barcode,
                           .drive_serial = std::string(parts_.drive.serial())};
    auto loading = parts_.robot.load(load);
    const auto moved = co_await std::move(loading);
    if (!moved) {
        const Errc why = moved.error().code;
        if (why == Errc::kNotFound || why == Errc::kInvalid) {
            parts_.shelf.set_state(id, CartridgeState::kMissing, moved.error().context);
        }
        if (why == Errc::kDenied) {
            const std::string keeper(parts_.robot.keeper(load.barcode));
            set_stuck(id, keeper);
        }
        co_return moved;
    }
    co_return co_await load_and_check(id, labels);
}

Task<Result<void>> DriveUnit::load_and_check(CartridgeId id, Labels labels) {
    parts_.drive.begin_trial();
    const auto loaded = co_await parts_.drive.load();
    did_not_load_ =
        !loaded && loaded.error().code != Errc::kUnsupported && loaded.error().code != Errc::kBusy;
    if (!loaded) {
        if (loaded.error().code == Errc::kUnsupported) {
            parts_.shelf.note_unsupported(id, parts_.drive.technology());
        }
        // The cartridge leaves, so that the drive is empty for the next request.
        [[maybe_unused]] const auto back = co_await give_back(id);
        co_return std::unexpected(loaded.error());
    }
    cartridge_ = id;
    label_is_right_ = false;
    may_be_copy_ = false;
    generation_on_tape_ = 0;
    other_on_tape_.reset();
    session_at_ = parts_.reactor.now();
    Cartridge* const cartridge = parts_.shelf.to_change().change(id);
    ENSURE(cartridge != nullptr);
    ++cartridge->mounts;
    cartridge->technology = loaded->technology;
    cartridge->capacity_bytes = loaded->capacity_bytes;
    parts_.shelf.show(id);
    const std::string barcode = cartridge->barcode;
    core::emit(parts_.events, core::Level::kInfo, "library.mounted",
               {{"drive", name()}, {"medium", std::string_view(barcode)}});
    if (labels == Labels::kAny) co_return Result<void>{};
    co_return co_await check_label(id);
}

// Puts away a cartridge that this drive has not loaded, or could not. If people have put it in, or
// an earlier process has loaded it, the drive has to unload it first.
Task<Result<void>> DriveUnit::give_back(std::optional<CartridgeId> id) {
    const std::string serial(parts_.drive.serial());
    const auto away = co_await parts_.robot.put_away(serial);
    const devices::LibraryElement* const element = parts_.robot.drive_element(serial);
    const bool is_empty = element == nullptr || !element->full;
    if (away || is_empty || is_down()) co_return away;
    // Nobody else asks the drive meanwhile.
    parts_.robot.note_used(serial);
    const auto unloaded = co_await parts_.drive.unload();
    const bool is_stuck = !unloaded && unloaded.error().code != Errc::kNotFound &&
                          unloaded.error().code != Errc::kBusy;
    if (is_stuck) {
        parts_.robot.note_given_back(serial);
        note_stuck(id ? id : cartridge_there(), unloaded.error());
        co_return unloaded;
    }
    co_return co_await parts_.robot.put_away(serial);
}

void DriveUnit::note_stuck(std::optional<CartridgeId> id, const Error& error) {
    go_down(describe(error));
    if (id) set_stuck(*id, name());
}

// Marks the cartridge as missing, so that no request waits for it.
void DriveUnit::set_stuck(CartridgeId id, std::string_view drive) {
    const CartridgeState state = parts_.shelf.find(id)->state;
    if (!is_readable(state) && state != CartridgeState::kBlank) return;
    parts_.shelf.set_state(id, CartridgeState::kMissing,
                           "it is stuck in drive " + std::string(drive));
}

Task<Result<void>> DriveUnit::unload() {
    const auto id = cartridge_;
    set_activity(DriveActivity::kExchanging);
    co_await end_session();
    const auto unloaded = co_await take_out();
    set_activity(DriveActivity::kIdle);
    if (!unloaded && id) say_failed(*id, "unload", failure(has_failed(), unloaded));
    co_return unloaded;
}

Task<Result<void>> DriveUnit::hand_over() {
    const auto id = cartridge_;
    set_activity(DriveActivity::kExchanging);
    const auto unloaded = co_await take_out();
    set_activity(DriveActivity::kIdle);
    fails_everywhere_ = !unloaded && !may_work_elsewhere(unloaded.error());
    if (!unloaded && id) say_failed(*id, "unload", failure(has_failed(), unloaded));
    co_return unloaded;
}

Task<Result<void>> DriveUnit::take_out() {
    forget_positions();
    parts_.drive.begin_trial();
    const bool was_loaded = parts_.drive.loaded().has_value();
    if (was_loaded) {
        const auto unloaded = co_await parts_.drive.unload();
        const bool is_stuck = !unloaded && parts_.drive.loaded();
        if (is_stuck) {
            // A busy drive or changer can be tried again.
            if (unloaded.error().code == Errc::kBusy) co_return unloaded;
            note_stuck(cartridge_, unloaded.error());
            co_return unloaded;
        }
        // Blocks that the drive has lost are in no record. The loss counts as a failed write, and
        // the cartridge leaves the drive.
        const bool is_failure = !unloaded && cartridge_;
        if (is_failure) {
            judge(*cartridge_, io_sched::IoType::kWrite,
                  failure(parts_.drive.trial().has_failed, unloaded));
        }
        parts_.drive.begin_trial();
        const Cartridge* const cartridge = cartridge_ ? parts_.shelf.find(*cartridge_) : nullptr;
        if (cartridge != nullptr && cartridge->state == CartridgeState::kMissing) {
            parts_.shelf.set_found(*cartridge_);
        }
    }
    if (cartridge_) {
        const std::string barcode = parts_.shelf.find(*cartridge_)->barcode;
        core::emit(parts_.events, core::Level::kInfo, "library.unmounted",
                   {{"drive", name()}, {"medium", std::string_view(barcode)}});
    }
    cartridge_.reset();
    if (!was_loaded) co_return co_await give_back(std::nullopt);
    co_return co_await parts_.robot.put_away(std::string(parts_.drive.serial()));
}

// The cartridge in the drive by the last inventory. Nothing: there is none, or it is not in the
// table.
std::optional<CartridgeId> DriveUnit::cartridge_there() const {
    const devices::LibraryElement* const element =
        parts_.robot.drive_element(parts_.drive.serial());
    if (element == nullptr || !element->full) return std::nullopt;
    const Cartridge* const cartridge = parts_.shelf.table().find(element->barcode);
    return cartridge == nullptr ? std::nullopt : std::optional(cartridge->id);
}

Task<void> DriveUnit::look_into() {
    const devices::LibraryElement* const element =
        parts_.robot.drive_element(parts_.drive.serial());
    if (element == nullptr || !element->full) co_return;
    const auto id = cartridge_there();
    if (!id) {
        [[maybe_unused]] const auto away = co_await unload();
        co_return;
    }
    parts_.robot.note_used(parts_.drive.serial());
    co_await load_found(*id);
}

Task<void> DriveUnit::adopt(CartridgeId id) {
    set_activity(DriveActivity::kExchanging);
    const Robot::Load load{.barcode = parts_.shelf.find(id)->barcode,
                           .drive_serial = std::string(parts_.drive.serial())};
    auto loading = parts_.robot.load(load);
    const auto there = co_await std::move(loading);
    if (there) co_await load_found(id);
    set_activity(DriveActivity::kIdle);
}

Task<void> DriveUnit::load_found(CartridgeId id) {
    const auto loaded = co_await load_and_check(id, Labels::kRight);
    if (loaded) co_return;
    judge(id, io_sched::IoType::kRead,
          failure(did_not_load_ || parts_.drive.trial().has_failed, loaded));
}

// -- for jobs --

Task<Result<void>> DriveUnit::format(std::string pool) {
    ENSURE(cartridge_.has_value());
    forget_positions();
    const CartridgeId id = *cartridge_;
    const CartridgeState before = parts_.shelf.find(id)->state;
    const bool was_blank = before == CartridgeState::kBlank;
    store::TapeIdentity identity = identity_of(*parts_.shelf.find(id));
    const auto generation = co_await next_generation(id);
    if (!generation) co_return std::unexpected(generation.error());
    identity.generation = *generation;
    identity.node = parts_.node;
    label_is_right_ = false;
    // The label's generation must never be greater than the one in the table.
    Cartridge& begun = parts_.shelf.begin_generation(id, identity.generation, pool);
    begun.is_label_pending = true;
    take_serial(begun);
    // After a crash, the next mount accepts the old label, the new one or none, and no other.
    parts_.shelf.set_state(id, is_readable(before) ? CartridgeState::kOk : before,
                           "its label is being written");
    const auto saved = co_await parts_.shelf.save();
    if (!saved) co_return saved;
    const auto formatted =
        co_await store::format(&parts_.drive, identity, store::TapeSite(), parts_.clock.wall());
    if (!formatted) {
        // The error kIo includes a label that reads back differently.
        if (formatted.error().code == Errc::kIo) parts_.drive.fail_trial();
        // A first failure may be the drive's fault.
        const bool has_failed = parts_.drive.trial().has_failed;
        const std::uint64_t failures = parts_.shelf.find(id)->failures + 1;
        const bool is_bad =
            !was_blank || (has_failed && failures >= parts_.blame.limits().cartridge_failures);
        parts_.shelf.set_state(id, is_bad ? CartridgeState::kFailed : CartridgeState::kBlank,
                               "its label could not be written");
        [[maybe_unused]] const auto noted = co_await parts_.shelf.save();
        co_return formatted;
    }
    label_is_right_ = true;
    parts_.shelf.note_label(id);
    parts_.blame.forget_damage(id);
    parts_.shelf.to_change().change(id)->failures = 0;
    parts_.shelf.set_state(id, CartridgeState::kOk, "");
    const std::string barcode = parts_.shelf.find(id)->barcode;
    core::emit(parts_.events, core::Level::kInfo, "library.formatted",
               {{"drive", name()},
                {"medium", std::string_view(barcode)},
                {"pool", std::string_view(pool)},
                {"generation", std::uint64_t{identity.generation}}});
    co_return co_await parts_.shelf.save();
}

}  // namespace fopd::library
