// How recalls are fulfilled.

#include <algorithm>
#include <string>
#include <utility>

#include "library/awaited_tape.h"
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
    Recall* const added = recalls_.emplace(fid, std::move(recall)).first->second.get();
    parts_.reactor.spawn(gate_, serve(added));
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
    recalls_.erase(recall->job.note().fid);
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
            std::string reason = "the copies cannot be read: " + describe(read.error());
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
    if (failed && !*failed) co_return;
    const std::string object = objects::format_fid(recall->job.note().fid);
    core::emit(parts_.events, core::Level::kError, "library.recall_failed",
               {{"object", std::string_view(object)}, {"reason", std::string_view(reason)}});
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

std::vector<const TapeLibrary::Recall*> TapeLibrary::ordered_recalls() const {
    std::vector<const Recall*> order;
    for (const auto& [fid, recall] : recalls_) order.push_back(recall.get());
    const auto rank = [](const Recall* each) {
        return std::tuple(!each->job.is_reading(), 255 - each->job.note().priority, each->arrival);
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
