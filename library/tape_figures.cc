#include "library/tape_figures.h"

#include <algorithm>
#include <span>

namespace fopd::library {

namespace {

double number(const core::Counter& counter) {
    return static_cast<double>(counter.get());
}

double seconds(const core::Counter& nanoseconds) {
    return number(nanoseconds) / 1e9;
}

// The time since the Instant in `since`; 0 if `count` is 0.
double age_seconds(const core::Counter& count, const core::Counter& since, Instant now) {
    if (count.get() == 0) return 0;
    const Instant began{Duration{static_cast<std::int64_t>(since.get())}};
    return std::max(0.0, in_seconds(now - began));
}

}  // namespace

TapeFigures::TapeFigures(const std::vector<TapePoolOptions>& pools) {
    for (const TapePoolOptions& each : pools) {
        pools_.push_back(std::make_unique<TapePoolFigures>(each.name));
    }
}

DriveFigures* TapeFigures::drive(std::string_view name) {
    const std::size_t count = drive_count_.load(std::memory_order_relaxed);
    const std::span known(drives_.data(), count);
    const auto found =
        std::ranges::find_if(known, [name](const auto& each) { return each->name == name; });
    if (found != known.end()) return found->get();
    if (count == kDrivesMax) return nullptr;
    drives_[count] = std::make_unique<DriveFigures>(name);
    drive_count_.store(count + 1, std::memory_order_release);
    return drives_[count].get();
}

void TapeFigures::collect_drive(core::MetricSink& sink, const DriveFigures& drive) const {
    const std::array labels{core::Label{"drive", drive.name}};
    for (std::size_t i = 0; i < kDriveActivityNames.size(); ++i) {
        const std::array each{core::Label{"drive", drive.name},
                              core::Label{"state", kDriveActivityNames[i]}};
        sink.gauge("fopd_tape_drive_state", "1 for the state of the drive, 0 for all others.", each,
                   drive.activity.get() == i ? 1 : 0);
    }
    sink.counter("fopd_tape_mounts", "Cartridges that the drive has loaded.", labels,
                 number(drive.mounts));
    sink.counter("fopd_tape_unmounts", "Cartridges that it has given back.", labels,
                 number(drive.unmounts));
    sink.counter("fopd_tape_locates", "Moves of the tape to another position.", labels,
                 number(drive.locates));
    sink.counter("fopd_tape_locate_predicted_seconds",
                 "How long they take by the model of the drive.", labels,
                 seconds(drive.locate_predicted_ns));
    sink.counter("fopd_tape_locate_seconds", "How long they took.", labels,
                 seconds(drive.locate_ns));
    sink.counter("fopd_tape_read_bytes", "Bytes that were read from tape.", labels,
                 number(drive.read_bytes));
    sink.counter("fopd_tape_written_bytes", "Bytes that were written to tape.", labels,
                 number(drive.written_bytes));
    sink.counter("fopd_tape_operations_failed", "Requests that failed with the drive.", labels,
                 number(drive.failures));
}

void TapeFigures::collect_pool(core::MetricSink& sink, const TapePoolFigures& pool,
                               Instant now) const {
    const std::array labels{core::Label{"pool", pool.name}};
    sink.gauge("fopd_tape_uncopied_objects", "Objects that need a copy on tape.", labels,
               number(pool.waiting_objects));
    sink.gauge("fopd_tape_uncopied_bytes", "Their bytes.", labels, number(pool.waiting_bytes));
    sink.gauge("fopd_tape_uncopied_oldest_seconds", "How long the oldest of them has waited.",
               labels, age_seconds(pool.waiting_objects, pool.oldest_ns, now));
    sink.counter("fopd_tape_copies", "Copies that were written and recorded.", labels,
                 number(pool.copies));
    sink.counter("fopd_tape_copied_bytes", "Their bytes.", labels, number(pool.copied_bytes));
    sink.counter("fopd_tape_copies_failed", "Batches that ended early, and objects left out.",
                 labels, number(pool.failures));
}

void TapeFigures::collect_recalls(core::MetricSink& sink, Instant now) const {
    sink.gauge("fopd_tape_recalls_pending", "Recalls that have not ended.", {},
               number(recalls.waiting));
    sink.gauge("fopd_tape_recalls_pending_bytes", "The bytes of their objects.", {},
               number(recalls.waiting_bytes));
    sink.gauge("fopd_tape_recalls", "Old name of fopd_tape_recalls_pending.", {},
               number(recalls.waiting));
    sink.gauge("fopd_tape_recalls_bytes", "Old name of fopd_tape_recalls_pending_bytes.", {},
               number(recalls.waiting_bytes));
    sink.gauge("fopd_tape_recalls_oldest_seconds", "How long the oldest of them has waited.", {},
               age_seconds(recalls.waiting, recalls.oldest_ns, now));
    const auto ended = [&](std::string_view result, const core::Counter& count) {
        const std::array labels{core::Label{"result", result}};
        sink.counter("fopd_tape_recalls_ended", "Recalls that have ended, by result.", labels,
                     number(count));
    };
    ended("done", recalls.done);
    ended("failed", recalls.failed);
}

void TapeFigures::collect_works(core::MetricSink& sink) const {
    sink.counter("fopd_tape_repacked_copies", "Copies that repacks have moved elsewhere.", {},
                 number(works.moved_copies));
    sink.counter("fopd_tape_repacked_bytes", "Their bytes.", {}, number(works.moved_bytes));
    sink.counter("fopd_tape_repack_failures", "Objects that repacks could not move.", {},
                 number(works.unmoved));
    sink.counter("fopd_tape_scrubbed_copies", "Copies that scrubs have read.", {},
                 number(works.scrubbed_copies));
    sink.counter("fopd_tape_scrubbed_bytes", "Their bytes.", {}, number(works.scrubbed_bytes));
    sink.counter("fopd_tape_damaged_copies", "Copies that scrubs have found damaged.", {},
                 number(works.damaged_copies));
}

void TapeFigures::collect(core::MetricSink& sink, Instant now) const {
    const std::size_t count = drive_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
        if (drives_[i]->is_present.get() != 0) collect_drive(sink, *drives_[i]);
    }
    for (const auto& pool : pools_) collect_pool(sink, *pool, now);
    for (std::size_t i = 0; i < media_.size(); ++i) {
        const std::array labels{core::Label{"state", kCartridgeStateNames[i]}};
        sink.gauge("fopd_tape_media", "Cartridges of the library, by state.", labels,
                   number(media_[i]));
    }
    collect_recalls(sink, now);
    collect_works(sink);
}

}  // namespace fopd::library
