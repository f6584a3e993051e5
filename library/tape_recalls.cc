// How the library executes recalls.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/ensure.h"
#include "library/pending_recall.h"
#include "library/tape_library.h"
#include "objects/fids.h"

namespace fopd::library {

namespace {

// A recall fails after so many attempts with all copies of the object.
constexpr std::uint32_t kRoundsMax = 3;
// The pause between two attempts, and the first pause when a recall waits for a drive, the changer
// or its home; each further pause is longer.
constexpr Duration kBetweenRounds = 5s;
constexpr Duration kBetweenRoundsMax = 30s;
// The event library.recalls_wait is emitted at most so often for the same reason.
constexpr Duration kSayAgain = 10min;
constexpr std::uint8_t kBackgroundBelow = kRecallPriorityDefault;

// Whether the error will pass: no drive is up, or the changer is busy. The copies may be good.
bool is_passing(const Error& error) {
    return error.code == Errc::kNotFound || error.code == Errc::kBusy;
}

Duration longer(Duration pause) {
    return std::min(2 * pause, kBetweenRoundsMax);
}

// Such as "cartridge V00001L9 or V00002L9".
std::string names_of(const MediaShelf& shelf, std::span<const io_sched::IoPart> parts) {
    std::string names;
    for (const io_sched::IoPart& each : parts) {
        const Cartridge* const cartridge = shelf.find(static_cast<CartridgeId>(each.medium));
        if (cartridge == nullptr) continue;
        names += (names.empty() ? "cartridge " : " or ") + cartridge->barcode;
    }
    return names;
}

}  // namespace

// -- the request of a recall --

TapeLibrary::Recall::Recall(TapeLibrary& its_library, std::uint32_t its_locality,
                            const RecallNote& note)
    : TapeRequest(&on_complete),
      library(its_library),
      fid(note.fid),
      asked_at(note.asked_at),
      locality(static_cast<std::uint16_t>(its_locality)),
      wish_priority(note.priority),
      only_part{.size_bytes = note.size_bytes} {
    type = io_sched::IoType::kRead;
    parts = std::span(&only_part, 1);
}

io_sched::IoPriority TapeLibrary::Recall::class_of(std::uint8_t priority) {
    return priority < kBackgroundBelow ? io_sched::IoPriority::kBackground
                                       : io_sched::IoPriority::kForeground;
}

void TapeLibrary::Recall::push(std::span<const RecallJob::PieceCopy> copies) {
    ENSURE(!copies.empty());
    const std::uint64_t object_bytes = size_bytes();
    const auto part_of = [object_bytes](const RecallJob::PieceCopy& of) {
        return io_sched::IoPart{
            .medium = io_sched::MediumId{of.cartridge},
            // The offset gives an order, not an address: the bytes on the cartridge before the
            // copy.
            .offset = of.copy.block * devices::kTapeBlockMax + of.copy.position.member,
            // Pieces behind this one are on the same cartridge, if it has room for them.
            .size_bytes = object_bytes - of.copy.offset};
    };
    only_part = part_of(copies.front());
    parts = std::span(&only_part, 1);
    if (copies.size() > 1) {
        if (extra == nullptr) extra = std::make_unique<Extra>();
        extra->several_parts.clear();
        for (const RecallJob::PieceCopy& each : copies)
            extra->several_parts.push_back(part_of(each));
        parts = extra->several_parts;
    }
    priority = class_of(wish_priority);
    urgency = wish_priority;
    if (serving() != nullptr) serving()->pushes = true;
    if (library.parts_.io.closed()) {
        result = std::unexpected(Error{.code = Errc::kClosed, .context = "the library stops"});
        return;
    }
    is_pushed = true;
    library.parts_.io.push(*this);
    const bool is_cancelled = serving() != nullptr && serving()->cancel.cancelled();
    if (is_cancelled) library.parts_.io.cancel(*this);
}

// A request that was pushed before the service began stays in the scheduler.
void TapeLibrary::Recall::end_serving() {
    serving()->cancel.cancel();
    if (is_pushed && serving()->pushes) library.parts_.io.cancel(*this);
}

void TapeLibrary::Recall::on_complete(io_sched::IoRequest& request) {
    auto& self = static_cast<Recall&>(request);
    self.is_pushed = false;
    TapeLibrary& library = self.library;
    Serving* const serving = self.serving();
    if (serving == nullptr) return library.end_unserved(self);
    if (serving->reader) library.parts_.reactor.schedule(std::exchange(serving->reader, {}));
}

// Waits for the end of a read.
class TapeLibrary::ReadAwaiter {
public:
    explicit ReadAwaiter(Recall& recall) : recall_(recall) {}

    bool await_ready() const { return !recall_.is_pushed; }
    void await_suspend(std::coroutine_handle<> handle) { recall_.serving()->reader = handle; }
    [[nodiscard]] Result<void> await_resume() const { return recall_.result; }

private:
    Recall& recall_;
};

// Called when the cartridge is loaded.
Task<Result<void>> TapeLibrary::Recall::run(DriveUnit* drive, CartridgeId cartridge) {
    if (library.stopping_ || is_over) co_return Result<void>{};
    library.stranded_pause_ = Duration{0};
    if (serving() == nullptr) {
        std::optional<RecallNote> note;
        do {
            is_renewed = false;
            auto asked = co_await library.note_of(this);
            if (library.stopping_ || is_over) co_return Result<void>{};
            note = std::move(asked);
        } while (!note && is_renewed);
        if (!note) {
            library.set_over(*this);
            co_return Result<void>{};
        }
        library.begin_to_serve(this, *std::move(note));
    }
    co_return co_await serving()->job.run(drive, cartridge);
}

// Asks the object's home for the recall as it is now; nothing: it has ended there.
Task<std::optional<RecallNote>> TapeLibrary::note_of(const Recall* recall) {
    auto job = [fid = recall->fid](StagingDisks& disks) { return disks.note_of(fid); };
    auto note = co_await homes_->call_at<std::optional<RecallNote>>(recall->locality, &job);
    if (!note) co_return std::nullopt;
    co_return *std::move(note);
}

// -- pending recalls --

void TapeLibrary::take_recall(std::uint32_t locality, RecallNote note) {
    if (stopping_ || shelf_ == nullptr) return;
    std::optional<io_sched::IoRequest::Age> age;
    if (Recall* const found = recalls_.find(note.fid)) {
        Recall& known = *found;
        const std::uint8_t before = std::exchange(known.wish_priority, note.priority);
        const bool is_queued_anew = known.waiting() && before != note.priority;
        if (Serving* const serving = known.serving()) {
            serving->renewed = std::move(note);
            // A request that was pushed before the recall was served keeps its place.
            if (!is_queued_anew || !serving->pushes) return;
            known.is_raised = true;
            parts_.io.cancel(known);
            return;
        }
        // The recall is pending; when it is served, it asks the home for the copies of that time.
        // One that was cancelled while its cartridge was being loaded is wanted again.
        if (known.is_over) {
            known.is_renewed = true;
            known.is_over = false;
            --over_count_;
            put_in_order_of_age(known);
        }
        if (!is_queued_anew) return;
        age = known.age();
        erase_recall(known);
    }
    Recall* const recall = add_recall(locality, note);
    if (age) recall->keep_age(*age);
    const auto copies = RecallJob::copies_at(*shelf_, note, 0);
    if (copies.empty()) {
        begin_to_serve(recall, std::move(note));
    } else {
        recall->push(copies);
    }
}

TapeLibrary::Recall* TapeLibrary::add_recall(std::uint32_t locality, const RecallNote& note) {
    static_assert(sizeof(Recall) <= 280, "with malloc() and the table, a recall has 300 bytes");
    Recall& recall = recalls_.insert(std::make_unique<Recall>(*this, locality, note));
    put_in_order_of_age(recall);
    return &recall;
}

void TapeLibrary::put_in_order_of_age(Recall& recall) {
    const auto is_later = [&recall](const AgePlace& each) {
        return static_cast<const Recall&>(each).asked_at > recall.asked_at;
    };
    // Recalls are added in the order of age, except after a change of priority.
    if (recalls_by_age_.empty() || !is_later(recalls_by_age_.back())) {
        recalls_by_age_.push_back(recall);
    } else {
        recalls_by_age_.insert_before_first(recall, is_later);
    }
    figures_.recalls.waiting_bytes.add(recall.size_bytes());
    count_recalls();
}

// Removes a recall; destroying it withdraws a waiting request.
void TapeLibrary::erase_recall(Recall& recall) {
    set_over(recall);
    recalls_.erase(recall);
    --over_count_;
}

// The recall has ended, though a drive or a coroutine may still use it.
void TapeLibrary::set_over(Recall& recall) {
    if (recall.is_over) return;
    recall.is_over = true;
    ++over_count_;
    recall.AgePlace::unlink();
    core::Counter& bytes = figures_.recalls.waiting_bytes;
    bytes.set(bytes.get() - recall.size_bytes());
    count_recalls();
}

void TapeLibrary::count_recalls() {
    if (!recalls_by_age_.empty()) {
        const auto& oldest = static_cast<const Recall&>(recalls_by_age_.front());
        put_instant(figures_.recalls.oldest_ns, oldest.asked_at);
    }
    figures_.recalls.waiting.set(recalls_.size() - over_count_);
}

// The recall has ended at its home: done, cancelled or not needed any more.
void TapeLibrary::end_recall(store::Fid fid) {
    Recall* const recall = recalls_.find(fid);
    if (recall == nullptr) return;
    const bool only_waits = recall->waiting() || !recall->is_pushed;
    if (recall->serving() == nullptr && only_waits) return erase_recall(*recall);
    set_over(*recall);
    if (recall->serving() == nullptr) return;
    recall->serving()->renewed.reset();
    recall->end_serving();
}

// Forgets waiting recalls: their records at the homes remain.
void TapeLibrary::stop_recalls() {
    recalls_by_age_.for_each([this](AgePlace& place) {
        auto& recall = static_cast<Recall&>(place);
        if (recall.serving() != nullptr) return recall.end_serving();
        if (recall.waiting() || !recall.is_pushed) erase_recall(recall);
    });
}

// The request of a recall has ended before the recall was served: no drive can take the cartridge,
// it cannot be loaded, or the recall has ended at its home.
void TapeLibrary::end_unserved(Recall& recall) {
    if (stopping_ || recall.is_over) return erase_recall(recall);
    const bool is_stranded = !recall.result && is_passing(recall.result.error());
    if (!is_stranded) return parts_.reactor.spawn(gate_, serve_unread(recall.fid));
    if (recall.result.error().code == Errc::kBusy) say_recalls_wait(recall, recall.result.error());
    stranded_.push_back(recall.fid);
    if (std::exchange(retries_stranded_, true)) return;
    parts_.reactor.spawn(gate_, retry_stranded());
}

// One coroutine tries all stranded recalls again, so that a stranded recall needs no coroutine.
Task<void> TapeLibrary::retry_stranded() {
    while (!stranded_.empty()) {
        stranded_pause_ = std::max(kBetweenRounds, longer(stranded_pause_));
        const auto slept = co_await parts_.reactor.sleep_for(stranded_pause_, &stop_);
        if (!slept) break;
        for (const store::Fid fid : std::exchange(stranded_, {})) {
            if (stopping_) break;
            co_await retry(fid);
        }
    }
    retries_stranded_ = false;
}

Task<void> TapeLibrary::retry(store::Fid fid) {
    Recall* const before = recalls_.find(fid);
    if (before == nullptr) co_return;
    before->is_renewed = false;
    auto note = co_await note_of(before);
    Recall* const recall = recalls_.find(fid);
    if (recall == nullptr || recall->is_pushed || recall->serving() != nullptr) co_return;
    if (!note) {
        // A recall that is wanted again is asked about again.
        if (recall->is_renewed) {
            stranded_.push_back(fid);
        } else {
            erase_recall(*recall);
        }
        co_return;
    }
    const auto copies = RecallJob::copies_at(*shelf_, *note, 0);
    if (copies.empty()) {
        begin_to_serve(recall, *std::move(note));
    } else {
        recall->push(copies);
    }
}

// -- serving --

void TapeLibrary::begin_to_serve(Recall* recall, RecallNote note) {
    const RecallJob::Parts parts{.homes = *homes_, .shelf = *shelf_, .stopping = stopping_};
    core::Counter& bytes = figures_.recalls.waiting_bytes;
    bytes.set(bytes.get() - recall->size_bytes() + note.size_bytes);
    if (recall->extra == nullptr) recall->extra = std::make_unique<Recall::Extra>();
    recall->extra->serving = std::make_unique<Serving>(parts, recall->locality, std::move(note));
    parts_.reactor.spawn(gate_, serve(recall));
}

Task<void> TapeLibrary::serve_unread(store::Fid fid) {
    for (;;) {
        Recall* const before = recalls_.find(fid);
        if (before == nullptr) co_return;
        before->is_renewed = false;
        auto note = co_await note_of(before);
        Recall* const recall = recalls_.find(fid);
        if (recall == nullptr || recall->is_pushed || recall->serving() != nullptr) co_return;
        if (!note && recall->is_renewed && !stopping_) continue;
        if (note && !stopping_) {
            begin_to_serve(recall, *std::move(note));
        } else {
            erase_recall(*recall);
        }
        co_return;
    }
}

Task<void> TapeLibrary::serve(Recall* recall) {
    co_await serve_note(recall);
    RecallJob& job = recall->serving()->job;
    if (job.state() != RecallJob::State::kDone) co_await job.abandon();
    auto renewed = std::move(recall->serving()->renewed);
    const std::uint32_t locality = recall->locality;
    const bool is_new = renewed && recall->is_over;
    if (job.is_complete()) {
        figures_.recalls.done.add(1);
        const Instant now = parts_.reactor.now();
        std::erase_if(said_waits_,
                      [now](const auto& said) { return now >= after(said.second, kSayAgain); });
    }
    erase_recall(*recall);
    if (is_new) take_recall(locality, *std::move(renewed));
}

Task<void> TapeLibrary::serve_note(Recall* recall) {
    RecallJob& job = recall->serving()->job;
    std::uint32_t rounds = 0;
    Duration pause = kBetweenRounds;
    bool has_waited = false;  // For room, or was about to.
    for (;;) {
        const auto read = co_await ReadAwaiter(*recall);
        show_drives();
        if (job.state() == RecallJob::State::kDone) co_return;
        if (stopping_ || recall->is_over) co_return;
        const bool is_withdrawn =
            recall->is_raised && !read && read.error().code == Errc::kCancelled;
        recall->is_raised = false;
        if (job.state() == RecallJob::State::kImpossible) {
            std::string reason = job.why_impossible();
            co_return co_await fail(recall, std::move(reason));
        }
        const bool has_failed = !read || job.state() != RecallJob::State::kPieces;
        if (has_failed && !is_withdrawn) {
            const std::optional<Error> refused = job.home_error();
            co_await job.abandon();
            job.try_again();
            // Other errors show that the copies cannot be read.
            const bool may_pass = read || is_passing(read.error());
            if (!may_pass && ++rounds >= kRoundsMax) {
                std::string reason = "cannot be read from " + names_of(*shelf_, recall->parts) +
                                     ": " + describe(read.error());
                co_return co_await fail(recall, std::move(reason), &read.error());
            }
            // Drives that are down are reported by library.drive_down.
            const bool is_busy = !read && read.error().code == Errc::kBusy;
            if (refused || is_busy) say_recalls_wait(*recall, refused ? *refused : read.error());
            const bool lacks_room = refused && refused->code == Errc::kNoSpace;
            bool goes_on = false;
            if (lacks_room && !std::exchange(has_waited, true)) {
                const bool waited = co_await wait_for_room(recall);
                goes_on = waited;
            }
            if (stopping_ || recall->is_over) co_return;
            // If others take the room before the recall does, it must not use drives without end.
            if (!goes_on) {
                const auto slept =
                    co_await parts_.reactor.sleep_for(pause, &recall->serving()->cancel);
                if (!slept || stopping_ || recall->is_over) co_return;
                if (may_pass) pause = longer(pause);
                if (lacks_room) co_await wait_for_room(recall);
                if (stopping_ || recall->is_over) co_return;
            }
        }
        auto copies = job.next_copies();
        if (copies.empty()) {
            if (job.may_be_back()) co_await look_again();
            if (stopping_ || recall->is_over) co_return;
            copies = job.next_copies();
        }
        if (copies.empty()) {
            std::string reason = job.why_unreadable();
            co_return co_await fail(recall, std::move(reason));
        }
        if (is_withdrawn) recall->keep_age(recall->age());
        recall->push(copies);
    }
}

// Waits for room on the object's disk, without a drive. The home tells when room may have come; as
// it does not tell of all that gives room, such as the end of a pin, the recall also tries after a
// pause. True: it has waited, so that something may be different now, or the recall was cancelled.
// False: it has not waited, since there was room, or another error than the lack of it, at once.
Task<bool> TapeLibrary::wait_for_room(Recall* recall) {
    RoomQueue& queue = room_queues_.try_emplace(recall->fid.slot(), parts_.reactor).first->second;
    Duration pause = kBetweenRounds;
    for (bool waited = false;; waited = true) {
        if (stopping_ || recall->is_over) {
            queue.let_next_try();
            co_return waited;
        }
        const std::uint64_t seen = queue.changes();
        const auto made = co_await recall->serving()->job.make_room();
        if (made) {
            queue.found_room();
            co_return waited;
        }
        queue.let_next_try();
        // Any other error is reported by the next attempt.
        if (made.error().code != Errc::kNoSpace) co_return waited;
        if (queue.changes() != seen) continue;
        const Instant until = after(parts_.reactor.now(), pause);
        const auto woken =
            co_await queue.wait({.deadline = until, .cancel = &recall->serving()->cancel});
        if (!woken && woken.error().code == Errc::kCancelled) co_return true;
        pause = woken ? kBetweenRounds : longer(pause);
    }
}

// Emits library.recalls_wait: once for each reason, until a recall has been done.
void TapeLibrary::say_recalls_wait(const Recall& recall, const Error& why) {
    // A stop of the node needs no event.
    if (why.code == Errc::kClosed || why.code == Errc::kCancelled) return;
    const auto [at, is_new] = said_waits_.emplace(why.context, parts_.reactor.now());
    if (!is_new) return;
    const std::string object = objects::format_fid(recall.fid);
    const std::string reason = describe(why);
    core::emit(parts_.events, core::Level::kWarn, "library.recalls_wait",
               {{"object", std::string_view(object)}, {"reason", std::string_view(reason)}});
}

Task<void> TapeLibrary::fail(Recall* recall, std::string reason, const Error* error) {
    const RecallEnd failure{.how = RecallEnd::How::kFailed,
                            .reason = std::move(reason),
                            .is_damaged = error != nullptr && error->code == Errc::kCorrupt};
    co_await recall->serving()->job.abandon();
    auto job = [fid = recall->fid, &failure](StagingDisks& disks) {
        return disks.fail_recall(fid, failure);
    };
    const auto failed = co_await homes_->run_at<bool>(recall->locality, &job);
    set_over(*recall);
    if (!failed || *failed) figures_.recalls.failed.add(1);
}

}  // namespace fopd::library
