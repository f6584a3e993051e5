// How recalls are fulfilled.

#include <algorithm>
#include <string>
#include <utility>

#include "core/ensure.h"
#include "library/pending_recall.h"
#include "library/tape_library.h"
#include "objects/fids.h"

namespace fopd::library {

namespace {

// How often all copies of an object are tried before its recall fails.
constexpr std::uint32_t kRoundsMax = 3;
// Between them, and when the object's home could not take it.
constexpr Duration kBetweenRounds = 5s;
constexpr std::uint8_t kBackgroundBelow = kRecallPriorityDefault;

}  // namespace

// -- the request of a recall --

TapeLibrary::Recall::Recall(TapeLibrary& its_library, std::uint32_t its_locality,
                            const RecallNote& note)
    : TapeRequest(&on_complete, *this),
      library(its_library),
      fid(note.fid),
      size_bytes(note.size_bytes),
      asked_at(note.asked_at),
      number(++its_library.recalls_taken_),
      locality(static_cast<std::uint16_t>(its_locality)),
      wish_priority(note.priority) {
    type = io_sched::IoType::kRead;
    const bool is_bulk = note.priority < kBackgroundBelow;
    priority = is_bulk ? io_sched::IoPriority::kBackground : io_sched::IoPriority::kForeground;
    parts = std::span(&only_part, 1);
}

void TapeLibrary::Recall::push(std::span<const RecallJob::Place> places) {
    ENSURE(!places.empty());
    const auto part_of = [](const RecallJob::Place& place) {
        // The bytes before the copy on its cartridge: an order, not an address.
        return io_sched::IoPart{
            .medium = io_sched::MediumId{place.cartridge},
            .offset = place.copy.block * devices::kTapeBlockMax + place.copy.place.member,
            .size_bytes = place.copy.length};
    };
    several_parts.reset();
    only_part = part_of(places.front());
    parts = std::span(&only_part, 1);
    if (places.size() > 1) {
        several_parts = std::make_unique<std::vector<io_sched::IoPart>>();
        for (const RecallJob::Place& each : places) several_parts->push_back(part_of(each));
        parts = *several_parts;
    }
    if (serving != nullptr) wait.cancel = &serving->cancel;
    if (library.parts_.io.closed()) {
        result = std::unexpected(Error{.code = Errc::kClosed, .context = "the library stops"});
        return;
    }
    is_pushed = true;
    library.parts_.io.push(*this);
}

void TapeLibrary::Recall::on_complete(io_sched::IoRequest& request) {
    auto& self = static_cast<Recall&>(request);
    self.is_pushed = false;
    TapeLibrary& library = self.library;
    if (self.serving == nullptr) return library.end_unserved(self);
    if (self.serving->reader) {
        library.parts_.reactor.schedule(std::exchange(self.serving->reader, {}));
    }
}

// Waits for the end of a read.
class TapeLibrary::ReadAwaiter {
public:
    explicit ReadAwaiter(Recall& recall) : recall_(recall) {}

    bool await_ready() const { return !recall_.is_pushed; }
    void await_suspend(std::coroutine_handle<> handle) { recall_.serving->reader = handle; }
    [[nodiscard]] Result<void> await_resume() const { return recall_.result; }

private:
    Recall& recall_;
};

// The cartridge is loaded: its turn has come.
Task<Result<void>> TapeLibrary::Recall::run(DriveUnit* drive, CartridgeId cartridge) {
    if (library.stopping_ || is_over) co_return Result<void>{};
    if (serving == nullptr) {
        auto note = co_await library.note_of(this);
        if (library.stopping_ || is_over) co_return Result<void>{};
        if (!note) {
            is_over = true;
            co_return Result<void>{};
        }
        library.begin_to_serve(this, *std::move(note));
    }
    co_return co_await serving->job.run(drive, cartridge);
}

// What its home says of it now; nothing: it has ended there.
Task<std::optional<RecallNote>> TapeLibrary::note_of(const Recall* recall) {
    auto job = [fid = recall->fid](StagingDisks& disks) { return disks.note_of(fid); };
    auto note = co_await homes_->call_at<std::optional<RecallNote>>(recall->locality, &job);
    if (!note) co_return std::nullopt;
    co_return *std::move(note);
}

// -- what waits --

void TapeLibrary::take_recall(std::uint32_t locality, RecallNote note) {
    if (stopping_ || shelf_ == nullptr) return;
    const auto found = recalls_.find(note.fid);
    if (found != recalls_.end()) {
        Recall& known = *found->second;
        if (known.serving != nullptr) {
            known.serving->renewed = std::move(note);
            return;
        }
        // Its turn comes with what its home says then.
        if (!known.waiting() || known.wish_priority == note.priority) return;
        recalls_.erase(found);
    }
    Recall* const recall =
        recalls_.emplace(note.fid, std::make_unique<Recall>(*this, locality, note))
            .first->second.get();
    const auto places = RecallJob::places_at(*shelf_, note, 0);
    if (places.empty()) {
        begin_to_serve(recall, std::move(note));
    } else {
        recall->push(places);
    }
}

// At its home it is done, cancelled, or of no use any more.
void TapeLibrary::end_recall(store::Fid fid) {
    const auto found = recalls_.find(fid);
    if (found == recalls_.end()) return;
    Recall& recall = *found->second;
    const bool only_waits = recall.waiting() || !recall.is_pushed;
    if (recall.serving == nullptr && only_waits) {
        recalls_.erase(found);  // Withdraws the request.
        return;
    }
    recall.is_over = true;
    if (recall.serving == nullptr) return;
    recall.serving->renewed.reset();
    recall.serving->cancel.cancel();
}

// Those that wait are recorded at their homes.
void TapeLibrary::stop_recalls() {
    for (auto each = recalls_.begin(); each != recalls_.end();) {
        Recall& recall = *each->second;
        if (recall.serving != nullptr) recall.serving->cancel.cancel();
        const bool only_waits =
            recall.serving == nullptr && (recall.waiting() || !recall.is_pushed);
        each = only_waits ? recalls_.erase(each) : std::next(each);
    }
}

// Its request has ended before it was served: no drive can have its cartridge, the cartridge cannot
// be loaded, or it is of no use any more.
void TapeLibrary::end_unserved(Recall& recall) {
    if (stopping_ || recall.is_over) {
        recalls_.erase(recall.fid);
        return;
    }
    const bool is_stranded = !recall.result && recall.result.error().code == Errc::kNotFound;
    if (!is_stranded) return parts_.reactor.spawn(gate_, serve_unread(recall.fid));
    stranded_.push_back(recall.fid);
    if (std::exchange(retries_stranded_, true)) return;
    parts_.reactor.spawn(gate_, retry_stranded());
}

// However many there are, one coroutine tries them again.
Task<void> TapeLibrary::retry_stranded() {
    while (!stranded_.empty()) {
        const auto slept = co_await parts_.reactor.sleep_for(kBetweenRounds, &stop_);
        if (!slept) break;
        for (const store::Fid fid : std::exchange(stranded_, {})) {
            if (stopping_) break;
            co_await retry(fid);
        }
    }
    retries_stranded_ = false;
}

Task<void> TapeLibrary::retry(store::Fid fid) {
    const auto before = recalls_.find(fid);
    if (before == recalls_.end()) co_return;
    auto note = co_await note_of(before->second.get());
    const auto found = recalls_.find(fid);
    if (found == recalls_.end()) co_return;
    Recall* const recall = found->second.get();
    if (recall->is_pushed || recall->serving != nullptr) co_return;
    if (!note) {
        recalls_.erase(found);
        co_return;
    }
    const auto places = RecallJob::places_at(*shelf_, *note, 0);
    if (places.empty()) {
        begin_to_serve(recall, *std::move(note));
    } else {
        recall->push(places);
    }
}

// -- serving --

void TapeLibrary::begin_to_serve(Recall* recall, RecallNote note) {
    const RecallJob::Parts parts{.homes = *homes_, .shelf = *shelf_, .stopping = stopping_};
    recall->serving = std::make_unique<Served::Serving>(parts, recall->locality, std::move(note));
    parts_.reactor.spawn(gate_, serve(recall));
}

Task<void> TapeLibrary::serve_unread(store::Fid fid) {
    const auto before = recalls_.find(fid);
    if (before == recalls_.end()) co_return;
    auto note = co_await note_of(before->second.get());
    const auto found = recalls_.find(fid);
    if (found == recalls_.end()) co_return;
    if (note && !stopping_) {
        begin_to_serve(found->second.get(), *std::move(note));
    } else {
        recalls_.erase(found);
    }
}

Task<void> TapeLibrary::serve(Recall* recall) {
    co_await serve_note(recall);
    RecallJob& job = recall->serving->job;
    if (job.state() != RecallJob::State::kDone) co_await job.abandon();
    auto renewed = std::move(recall->serving->renewed);
    const std::uint32_t locality = recall->locality;
    const bool is_new = renewed && recall->is_over;
    const store::Fid fid = recall->fid;
    recalls_.erase(fid);
    if (is_new) take_recall(locality, *std::move(renewed));
}

Task<void> TapeLibrary::serve_note(Recall* recall) {
    RecallJob& job = recall->serving->job;
    std::uint32_t rounds = 0;
    for (;;) {
        const auto read = co_await ReadAwaiter(*recall);
        show_drives();
        if (job.state() == RecallJob::State::kDone) co_return;
        if (stopping_ || recall->is_over) co_return;
        if (job.state() == RecallJob::State::kImpossible) {
            std::string reason = job.why_impossible();
            co_return co_await fail(recall, std::move(reason));
        }
        if (!read || job.state() != RecallJob::State::kPieces) {
            co_await job.abandon();
            job.try_again();
            // Without a drive it waits for one; otherwise the copies cannot be read.
            const bool is_unreadable = !read && read.error().code != Errc::kNotFound;
            if (is_unreadable && ++rounds >= kRoundsMax) {
                std::string reason = "the copies cannot be read: " + describe(read.error());
                co_return co_await fail(recall, std::move(reason));
            }
            const auto slept =
                co_await parts_.reactor.sleep_for(kBetweenRounds, &recall->serving->cancel);
            if (!slept || stopping_ || recall->is_over) co_return;
        }
        const auto places = job.next_places();
        if (places.empty()) {
            std::string reason = job.why_unreadable();
            co_return co_await fail(recall, std::move(reason));
        }
        recall->push(places);
    }
}

Task<void> TapeLibrary::fail(Recall* recall, std::string reason) {
    const std::string object = objects::format_fid(recall->fid);
    core::emit(parts_.events, core::Level::kError, "library.recall_failed",
               {{"object", std::string_view(object)}, {"reason", std::string_view(reason)}});
    co_await recall->serving->job.abandon();
    auto job = [fid = recall->fid, &reason](StagingDisks& disks) {
        return disks.fail_recall(fid, reason);
    };
    [[maybe_unused]] const auto told = co_await homes_->run_at<void>(recall->locality, &job);
    recall->is_over = true;
}

// -- lists --

RecallRow TapeLibrary::row_of(const Recall& recall) const {
    const Cartridge* const cartridge =
        shelf_ == nullptr ? nullptr : shelf_->find(recall.cartridge());
    return {.ticket = recall.fid,
            .state = recall.is_reading() ? RecallRow::State::kReading : RecallRow::State::kWaiting,
            .priority = recall.wish_priority,
            .size_bytes = recall.size_bytes,
            .asked_at = recall.asked_at,
            .cartridge = cartridge == nullptr ? std::string() : cartridge->barcode};
}

std::vector<const TapeLibrary::Recall*> TapeLibrary::ordered_recalls() const {
    std::vector<const Recall*> order;
    for (const auto& [fid, recall] : recalls_) order.push_back(recall.get());
    const auto rank = [](const Recall* each) {
        return std::tuple(!each->is_reading(), 255 - each->wish_priority, each->number);
    };
    std::ranges::sort(order, {}, rank);
    return order;
}

std::vector<RecallRow> TapeLibrary::recalls(std::size_t rows_max) const {
    std::vector<RecallRow> rows;
    for (const Recall* each : ordered_recalls()) {
        if (rows.size() == rows_max) break;
        RecallRow row = row_of(*each);
        row.place = rows.size();
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace fopd::library
