// How the library lists recalls, and estimates when they end.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "core/stable_sort.h"
#include "devices/tape/drive_model.h"
#include "library/pending_recall.h"
#include "library/recall_forecast.h"
#include "library/tape_library.h"

namespace fopd::library {

RecallRow TapeLibrary::row_of(const Recall& recall) const {
    const Cartridge* const cartridge =
        shelf_ == nullptr ? nullptr : shelf_->find(recall.cartridge());
    return {.ticket = recall.fid,
            .state = recall.is_reading() ? RecallRow::State::kReading : RecallRow::State::kWaiting,
            .priority = recall.wish_priority,
            .size_bytes = recall.size_bytes(),
            .asked_at = recall.asked_at,
            .cartridge = cartridge == nullptr ? std::string() : cartridge->barcode};
}

std::vector<TapeLibrary::Recall*> TapeLibrary::ordered_recalls() const {
    std::vector<Recall*> order;
    // A recall that has ended may still be here until its cartridge is loaded.
    recalls_.for_each([&order](Recall& each) {
        if (!each.is_over) order.push_back(&each);
    });
    const auto rank = [](const Recall* each) {
        return std::tuple(!each->is_reading(), -int{each->wish_priority}, each->arrival(),
                          each->fid);
    };
    std::ranges::sort(order, {}, rank);
    return order;
}

// Estimates the ends of all recalls, from the models and the activity of the drives.
std::vector<TapeLibrary::Expected> TapeLibrary::expected_ends() const {
    const std::vector<Recall*> order = ordered_recalls();
    RecallForecast::Options options{.now = parts_.reactor.now()};
    // Every algorithm but the default one reads all recalls of a cartridge together.
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
            shelf_ == nullptr ? nullptr : shelf_->find(each->cartridge());
        forecast.add({.cartridge = cartridge == nullptr ? 0 : cartridge->id,
                      .capacity_bytes = cartridge == nullptr ? 0 : cartridge->capacity_bytes,
                      .offset = each->offset(),
                      .size_bytes = each->size_bytes(),
                      .reads = each->is_reading(),
                      .priority = each->wish_priority});
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

void TapeLibrary::list_recalls(std::size_t rows_max) const {
    listed_recalls_.clear();
    for (const Expected& each : expected_ends()) {
        if (listed_recalls_.size() == rows_max) break;
        RecallRow row = row_of(*each.recall);
        row.expected_at = each.end;
        listed_recalls_.push_back(std::move(row));
    }
    listed_rows_max_ = rows_max;
    const auto pause = std::chrono::seconds(static_cast<std::int64_t>(recalls_.size() / 10'000));
    list_again_at_ = after(parts_.reactor.now(), pause);
}

// The list of many recalls takes long. Whoever asks for it again and again must not stop the
// library, so it is made only now and then.
std::vector<RecallRow> TapeLibrary::recalls(std::size_t rows_max) const {
    if (parts_.reactor.now() >= list_again_at_ || rows_max > listed_rows_max_) {
        list_recalls(rows_max);
    }
    std::vector<RecallRow> rows;
    for (const RecallRow& each : listed_recalls_) {
        if (rows.size() == rows_max) break;
        const Recall* const recall = recalls_.find(each.ticket);
        if (recall == nullptr || recall->is_over) continue;
        rows.push_back(each);
        rows.back().place = rows.size() - 1;
    }
    return rows;
}

PendingRecalls TapeLibrary::pending_recalls() const {
    const std::uint64_t count = figures_.recalls.waiting.get();
    if (count == 0) return {};
    const Duration oldest(static_cast<Duration::rep>(figures_.recalls.oldest_ns.get()));
    return {.count = count, .oldest_at = Instant{} + oldest};
}

// Clients that wait for recalls call this again and again. So the list is made about once a second,
// less often if it is long.
std::optional<RecallRow> TapeLibrary::find_recall(Ticket ticket) {
    const Recall* const recall = recalls_.find(ticket);
    if (recall == nullptr || recall->is_over) return std::nullopt;
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
    RecallRow row = row_of(*recall);
    row.place = recall->last_place == Recall::kNoPlace ? recalls_.size() - 1 : recall->last_place;
    if (recall->last_end != kNever) row.expected_at = recall->last_end;
    return row;
}

std::string TapeLibrary::why_recalls_wait() const {
    const auto closed = why_not_open();
    if (closed) return closed->empty() ? "" : "the tape library is not open: " + *closed;
    if (!are_all_drives_down()) return {};
    return "all drives of library " + options_.name +
           " are down; `fopctl drives` shows why, and `fopctl drive up` takes one into use again";
}

}  // namespace fopd::library
