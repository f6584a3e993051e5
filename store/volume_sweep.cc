// The sweep of a volume: it frees the blocks of removed and truncated objects, in the background
// and part by part.

#include <utility>

#include "store/volume.h"

namespace fopd::store {

void Volume::will_sweep() {
    has_to_sweep_ = true;
    sweep_wanted_.wake_all();
}

Task<void> Volume::sweep() {
    while (!stop_.cancelled() && serving()) {
        if (!has_to_sweep_) {
            const core::WaitOptions wait{.cancel = &stop_};
            const auto woken = co_await sweep_wanted_.wait(wait);
            if (!woken) co_return;
        }
        const auto swept = co_await sweep_some();
        if (!swept || !swept_ranges_.empty()) ++sweep_news_;
        swept_.wake_all();
        if (!swept) {
            // While the index has no space the log cannot be cleaned, and may be full.
            const bool may_pass = swept.error().code == Errc::kNoSpace;
            if (!may_pass && swept.error().code != Errc::kCancelled) fail(swept.error());
            if (!may_pass) co_return;
            const auto slept = co_await reactor_.sleep_for(kRetryAfter, &stop_);
            if (!slept) co_return;
            continue;
        }
        if (options_.sweep.pause == Duration{0}) {
            co_await reactor_.yield();
            continue;
        }
        const auto slept = co_await reactor_.sleep_for(options_.sweep.pause, &stop_);
        if (!slept) co_return;
    }
}

// Frees one part, and logs that, so that a replay makes the same map.
Task<Result<void>> Volume::sweep_some() {
    swept_ranges_.clear();
    const core::WaitOptions wait{.cancel = &stop_};
    auto reserved = co_await reserve(kPunchRecordBytes, wait, Purpose::kFreeing);
    if (!reserved) co_return std::unexpected(reserved.error());
    const auto swept = map_.sweep(extents_a_turn(), swept_ranges_);
    if (!swept) co_return std::unexpected(swept.error());
    has_to_sweep_ = swept->has_value();
    if (!has_to_sweep_) co_return Result<void>{};
    const ObjectMap::Swept& part = **swept;
    if (part.range.count == 0) co_return Result<void>{};
    RecordWriter record;
    record.punch(part.fid, part.range.first, part.range.count);
    Commit commit;
    log_.begin(commit, std::move(*reserved), record.bytes(), record.count(), Durability::kBuffered,
               Data::kNone);
    for (const DiskRange range : swept_ranges_) space_->release(range, commit.seq());
    settle();
    co_return Result<void>{};
}

}  // namespace fopd::store
