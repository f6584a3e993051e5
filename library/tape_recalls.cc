// How recalls are fulfilled.

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "core/stable_sort.h"
#include "devices/tape/drive_model.h"
#include "library/awaited_tape.h"
#include "library/pending_recall.h"
#include "library/recall_forecast.h"
#include "library/tape_library.h"

namespace fopd::library {

namespace {

// How often all copies of an object are tried before its recall fails.
constexpr std::uint32_t kRoundsMax = 3;
// Between them, and when the object's home could not take it.
constexpr Duration kBetweenRounds = 5s;
constexpr std::uint8_t kBackgroundBelow = kRecallPriorityDefault;

// Such as "cartridge V00001L9 or V00002L9".
std::string names_of(const MediaShelf& shelf, const std::vector<RecallJob::Place>& places) {
    std::string names;
    for (const RecallJob::Place& each : places) {
        names += (names.empty() ? "cartridge " : " or ") + shelf.find(each.cartridge)->barcode;
    }
    return names;
}

}  // namespace

void TapeLibrary::take_recall(std::uint32_t locality, RecallNote note) {
    if (stopping_ || shelf_ == nullptr) return;
    const store::Fid fid = note.fid;
    const auto found = recalls_.find(fid);
    if (found != recalls_.end()) {
        found->second->renewed = std::move(note);
        return;
    }
    const RecallJob::Parts parts{.homes = *homes_, .shelf = *shelf_, .stopping = stopping_};
    auto recall = std::make_unique<Recall>(parts, locality, std::move(note));
    recall->arrival = ++recalls_taken_;
    recalls_by_age_.push_back(*recall);
    figures_.recalls.waiting_bytes.add(recall->job.note().size_bytes);
    Recall* const added = recalls_.emplace(fid, std::move(recall)).first->second.get();
    count_recalls();
    parts_.reactor.spawn(gate_, serve(added));
}

// The oldest is that of which the library has learned first.
void TapeLibrary::count_recalls() {
    if (!recalls_.empty()) {
        const auto& oldest = static_cast<const Recall&>(recalls_by_age_.front());
        put_instant(figures_.recalls.oldest_ns, oldest.job.note().asked_at);
    }
    figures_.recalls.waiting.set(recalls_.size());
}

// At its home it is done, cancelled, or of no use any more.
void TapeLibrary::end_recall(store::Fid fid) {
    const auto found = recalls_.find(fid);
    if (found == recalls_.end()) return;
    found->second->is_over = true;
    found->second->renewed.reset();
    found->second->cancel.cancel();
}

Task<void> TapeLibrary::serve(Recall* recall) {
    co_await serve_note(recall);
    if (recall->job.state() != RecallJob::State::kDone) co_await recall->job.abandon();
    auto renewed = std::move(recall->renewed);
    const std::uint32_t locality = recall->job.locality();
    const bool is_new = renewed && recall->is_over;
    if (recall->job.is_complete()) figures_.recalls.done.add(1);
    core::Counter& bytes = figures_.recalls.waiting_bytes;
    bytes.set(bytes.get() - recall->job.note().size_bytes);
    recalls_.erase(recall->job.note().fid);
    count_recalls();
    if (is_new) take_recall(locality, *std::move(renewed));
}

Task<void> TapeLibrary::serve_note(Recall* recall) {
    std::uint32_t rounds = 0;
    while (!stopping_ && !recall->is_over) {
        auto places = recall->job.next_places();
        if (places.empty()) {
            std::string reason = recall->job.why_unreadable();
            co_return co_await fail(recall, std::move(reason));
        }
        const std::string names = names_of(*shelf_, places);
        const auto read = co_await read_once(recall, std::move(places));
        show_drives();
        if (recall->job.state() == RecallJob::State::kDone) co_return;
        if (stopping_ || recall->is_over) co_return;
        if (read && recall->job.state() == RecallJob::State::kPieces) continue;
        co_await recall->job.abandon();
        recall->job.try_again();
        // Without a drive it waits for one; otherwise the copies cannot be read.
        const bool is_unreadable = !read && read.error().code != Errc::kNotFound;
        if (is_unreadable && ++rounds >= kRoundsMax) {
            std::string reason = "cannot be read from " + names + ": " + describe(read.error());
            co_return co_await fail(recall, std::move(reason));
        }
        const auto slept = co_await parts_.reactor.sleep_for(kBetweenRounds, &recall->cancel);
        if (!slept) co_return;
    }
}

Task<Result<void>> TapeLibrary::read_once(Recall* recall, std::vector<RecallJob::Place> places) {
    std::vector<io_sched::IoPart> parts;
    for (const RecallJob::Place& each : places) {
        // The bytes before the copy on its cartridge: an order, not an address.
        const std::uint64_t offset =
            each.copy.block * devices::kTapeBlockMax + each.copy.place.member;
        parts.push_back({.medium = io_sched::MediumId{each.cartridge},
                         .offset = offset,
                         .size_bytes = each.copy.length});
    }
    recall->cartridge = places.front().cartridge;
    recall->offset = parts.front().offset;
    const AwaitedTape::Scheduler scheduler{.reactor = parts_.reactor, .main = parts_.io};
    const bool is_bulk = recall->job.note().priority < kBackgroundBelow;
    const AwaitedTape::Options options{
        .type = io_sched::IoType::kRead,
        .priority = is_bulk ? io_sched::IoPriority::kBackground : io_sched::IoPriority::kForeground,
        .wait = {.cancel = &recall->cancel}};
    AwaitedTape request(scheduler, recall->job, options, std::move(parts));
    co_return co_await request;
}

Task<void> TapeLibrary::fail(Recall* recall, std::string reason) {
    co_await recall->job.abandon();
    auto job = [fid = recall->job.note().fid, &reason](StagingDisks& disks) {
        return disks.fail_recall(fid, reason);
    };
    const auto failed = co_await homes_->run_at<bool>(recall->job.locality(), &job);
    recall->is_over = true;
    if (!failed || *failed) figures_.recalls.failed.add(1);
}

// -- lists --

RecallRow TapeLibrary::row_of(const Recall& recall) const {
    const Cartridge* const cartridge = shelf_ == nullptr ? nullptr : shelf_->find(recall.cartridge);
    const RecallNote& note = recall.job.note();
    return {
        .ticket = note.fid,
        .state = recall.job.is_reading() ? RecallRow::State::kReading : RecallRow::State::kWaiting,
        .priority = note.priority,
        .size_bytes = note.size_bytes,
        .asked_at = note.asked_at,
        .cartridge = cartridge == nullptr ? std::string() : cartridge->barcode};
}

std::vector<TapeLibrary::Recall*> TapeLibrary::ordered_recalls() const {
    std::vector<Recall*> order;
    for (const auto& [fid, recall] : recalls_) order.push_back(recall.get());
    const auto rank = [](const Recall* each) {
        return std::tuple(!each->job.is_reading(), 255 - each->job.note().priority, each->arrival);
    };
    std::ranges::sort(order, {}, rank);
    return order;
}

// As far as is known: the drives, what they do now, and the recalls that have a cartridge.
std::vector<TapeLibrary::Expected> TapeLibrary::expected_ends() const {
    const std::vector<Recall*> order = ordered_recalls();
    RecallForecast::Options options{.now = parts_.reactor.now()};
    // All but the default one read what is on a cartridge together.
    options.grouped = parts_.io.tape_settings().read_algo != &io_sched::default_drive_algorithm();
    options.takes_time =
        options_.kind != LibraryKind::kVirtual || options_.timing == LibraryTiming::kReal;
    RecallForecast forecast(options);
    for (const Unit& each : units_) {
        if (each.drive->is_down()) continue;
        const devices::DriveModel* const model =
            devices::find_drive_model(each.drive->drive().technology());
        const auto medium = each.device->medium();
        RecallForecast::Drive drive{.model = *model, .position = each.device->position()};
        if (medium) drive.cartridge = static_cast<CartridgeId>(*medium);
        drive.busy_since = each.drive->busy_since();
        drive.busy_bytes = each.drive->busy_bytes();
        drive.activity = each.drive->activity();
        forecast.add(drive);
    }
    for (const Recall* const each : order) {
        const Cartridge* const cartridge =
            shelf_ == nullptr ? nullptr : shelf_->find(each->cartridge);
        forecast.add({.cartridge = cartridge == nullptr ? 0 : cartridge->id,
                      .capacity_bytes = cartridge == nullptr ? 0 : cartridge->capacity_bytes,
                      .offset = each->offset,
                      .size_bytes = each->job.note().size_bytes,
                      .reads = each->job.is_reading()});
    }
    const std::vector<std::optional<Instant>> ends = forecast.ends();
    std::vector<Expected> expected;
    for (std::size_t i = 0; i < order.size(); ++i) {
        expected.push_back({.recall = order[i], .end = ends[i]});
    }
    core::stable_sort(expected, std::less{},
                      [](const Expected& each) { return each.end.value_or(kNever); });
    return expected;
}

std::vector<RecallRow> TapeLibrary::recalls(std::size_t rows_max) const {
    std::vector<RecallRow> rows;
    for (const Expected& each : expected_ends()) {
        if (rows.size() == rows_max) break;
        RecallRow row = row_of(*each.recall);
        row.place = rows.size();
        row.expected_at = each.end;
        rows.push_back(std::move(row));
    }
    return rows;
}

// Many who wait for their recalls ask again and again, so that the list is made at most about once
// a second, less often if it is long.
std::optional<RecallRow> TapeLibrary::find_recall(Ticket ticket) {
    const auto found = recalls_.find(ticket);
    if (found == recalls_.end()) return std::nullopt;
    const Instant now = parts_.reactor.now();
    const auto pause = std::chrono::seconds(static_cast<std::int64_t>(recalls_.size() / 10'000));
    if (now >= look_again_at_) {
        std::uint32_t place = 0;
        for (const Expected& each : expected_ends()) {
            each.recall->last_place = place++;
            each.recall->last_end = each.end.value_or(kNever);
        }
        look_again_at_ = after(now, 1s + pause);
    }
    RecallRow row = row_of(*found->second);
    const Recall& recall = *found->second;
    row.place = recall.last_place == Recall::kNoPlace ? recalls_.size() - 1 : recall.last_place;
    if (recall.last_end != kNever) row.expected_at = recall.last_end;
    return row;
}

}  // namespace fopd::library
