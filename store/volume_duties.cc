// The background work of a volume: checkpoints of its index, and cleaning of its log.

#include <algorithm>
#include <string_view>

#include "store/live_records.h"
#include "store/volume.h"

namespace fopd::store {

// -- the index follows --

bool Volume::checkpoint_due() const {
    const SpaceUse use = space_->use();
    return index_.changed_bytes() * 2 > options_.overlay_bytes || index_.wants_checkpoint() ||
           use.waiting_blocks * 10 > use.room_blocks();
}

// Moves all changes begun so far into the index, once they are durable.
Task<Result<void>> Volume::checkpoint() {
    ChangeLog* const log = this;
    const auto made = co_await index_.checkpoint(log);
    let_in_changes_ = 0;
    checkpoint_made_.wake_all();
    if (!made) co_return made;
    ++checkpoint_count_;
    log_.set_applied(index_.applied());
    size_log();
    settle();
    co_return Result<void>{};
}

// Emits one event when the index becomes full and one when it has room again: a file system stays
// full for long.
void Volume::note_checkpoint(const Result<void>& made) {
    const bool may_pass = made || made.error().code == Errc::kNoSpace;
    if (!may_pass) {
        core::emit(events_, core::Level::kError, "store.checkpoint_failed",
                   {{"device", device_.name()},
                    {"reason", std::string_view(made.error().context)},
                    {"errno", std::int64_t{made.error().os_errno}}});
        return;
    }
    const bool was_full = index_failure_.has_value();
    const bool is_full = !made || !index_.has_reserve();
    index_failure_.reset();
    if (is_full) {
        index_failure_ = Error{.code = Errc::kNoSpace,
                               .context = "there is no space left for the index of its disk"};
    }
    if (!made) {
        log_.stall(*index_failure_);
    } else if (checkpoint_fails_) {
        log_.unstall();
    }
    checkpoint_fails_ = !made;
    if (was_full == is_full) return;
    core::emit(events_, is_full ? core::Level::kError : core::Level::kInfo,
               is_full ? "store.index_full" : "store.index_has_room",
               {{"device", device_.name()},
                {"bytes", index_.figures().size_bytes},
                {"changes_waiting", std::uint64_t{index_.change_count()}}});
}

Task<void> Volume::keep_index_up() {
    Instant next = after(reactor_.now(), options_.checkpoint_interval);
    while (!stop_.cancelled() && serving()) {
        const core::WaitOptions wait{.deadline = next, .cancel = &stop_};
        const auto woken = co_await checkpoint_wanted_.wait(wait);
        if (!woken && woken.error().code == Errc::kCancelled) co_return;
        next = after(reactor_.now(), options_.checkpoint_interval);
        settle();
        note_log_room();
        // A full index gets a checkpoint also without changes, to find out whether it has room now.
        if (log_.begun_seq() == index_.applied() && !index_failure_) continue;
        const auto made = co_await checkpoint();
        if (stop_.cancelled()) continue;
        note_checkpoint(made);
        if (made) continue;
        if (made.error().code != Errc::kNoSpace) {
            fail(made.error());
            co_return;
        }
        const auto slept = co_await reactor_.sleep_for(kRetryAfter, &stop_);
        if (!slept) co_return;
    }
}

// -- the log stays short --

Task<void> Volume::keep_log_short() {
    LiveRecords live(
        {.reactor = reactor_, .log = log_, .index = index_, .map = map_, .stop = stop_});
    while (!stop_.cancelled() && serving()) {
        const core::WaitOptions wait{.cancel = &stop_};
        const auto wanted = co_await log_.wait_cleaning_wanted(wait);
        if (!wanted) co_return;
        const auto cleaned = co_await log_.clean(&live);
        note_log_room();
        // kNoSpace: the log is full; wait_cleaning_wanted() waits until something has changed.
        if (cleaned || cleaned.error().code == Errc::kNoSpace) continue;
        if (cleaned.error().code == Errc::kBusy) {
            // The index does not hold everything in the segment yet.
            checkpoint_wanted_.wake_all();
            const core::WaitOptions soon{.deadline = after(reactor_.now(), kRetryAfter),
                                         .cancel = &stop_};
            const auto made = co_await checkpoint_made_.wait(soon);
            if (made) continue;
        } else if (!stop_.cancelled()) {
            fail(cleaned.error());
        }
        const auto slept = co_await reactor_.sleep_for(kRetryAfter, &stop_);
        if (!slept) co_return;
    }
}

// Emits one event when the log becomes full and one when it has room again.
void Volume::note_log_room() {
    if (log_.is_full() == log_was_full_) return;
    log_was_full_ = !log_was_full_;
    const LogSpaceFigures space = log_.space();
    core::emit(events_, log_was_full_ ? core::Level::kWarn : core::Level::kInfo,
               log_was_full_ ? "store.log_full" : "store.log_has_room",
               {{"device", device_.name()},
                {"segments", std::uint64_t{space.segments}},
                {"segments_max", std::uint64_t{space.segments_max}}});
}

}  // namespace fopd::store
