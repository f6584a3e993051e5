// Cleaning: the oldest segment is emptied, and its live records are committed again.

#include <algorithm>
#include <utility>

#include "store/log.h"

namespace fopd::store {

// Whether the index has all that the oldest segment holds.
bool Log::is_oldest_applied() const {
    return space_.head() > 0 && space_.segments()[1].first_seq <= applied_ + 1;
}

bool Log::cleaning_wanted() const {
    if (!is_serving() || failed() != nullptr || space_.head() == 0 || growth_due()) return false;
    // A delete that waits for room is worth a round as soon as anything has changed.
    const bool may_gain =
        !rounds_.is_exhausted() || (has_waiting_to_free() && rounds_.has_changed());
    if (!may_gain) return false;
    const bool is_long = space_.segments().size() > segments_max_ && !space_.is_ample();
    return space_.very_low() || is_long;
}

Task<Result<void>> Log::wait_cleaning_wanted(core::WaitOptions wait) {
    while (!cleaning_wanted()) {
        if (failed() != nullptr) co_return std::unexpected(*failed());
        if (is_closing()) co_return std::unexpected(closed_error());
        const auto woken = co_await cleaning_.wait(wait);
        if (!woken) co_return woken;
    }
    co_return Result<void>{};
}

Task<Result<void>> Log::clean(CleanVisitor* visitor) {
    ENSURE(is_serving());
    if (failed() != nullptr) co_return std::unexpected(*failed());
    if (space_.head() == 0) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy,
                  .context = "the log has one segment only, which cannot be cleaned"});
    }
    if (!is_oldest_applied()) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the index does not hold the oldest segment"});
    }
    rounds_.begin(begun_seq());
    const std::uint64_t end_seq = space_.segments()[1].first_seq;
    const auto handed_out = co_await hand_out_oldest(visitor, end_seq);
    if (!handed_out && handed_out.error().code == Errc::kNoSpace) {
        rounds_.end_in_vain();
        wake_room();
    }
    if (!handed_out) co_return handed_out;
    // The records committed again are durable before their old copies are gone.
    const auto synced = co_await sync({});
    if (!synced) co_return synced;
    co_await lock_superblock();
    const auto dropped = co_await drop_oldest();
    unlock_superblock();
    ask_source_again();
    if (dropped) rounds_.segment_cleaned();
    rounds_.note_room();
    wake_room();
    look_after_space();
    co_return dropped;
}

// Reads in the background, so that reads and writes of clients go first; directly once commits wait
// for the space that cleaning frees, or will soon, so that cleaning does not wait for those.
Task<Result<std::optional<EntryReader::Found>>> Log::read_to_clean(EntryReader* reader,
                                                                   LogPosition at) {
    if (!has_waiting_for_space() && !space_.nearly_out()) {
        background_read_.emplace();
        reader->read_from(background_, {.cancel = &*background_read_});
        const auto found = co_await reader->at(at);
        background_read_.reset();
        if (found || found.error().code != Errc::kCancelled) co_return found;
    }
    reader->read_from(device_, {});
    co_return co_await reader->at(at);
}

Task<Result<void>> Log::hand_out_oldest(CleanVisitor* visitor, std::uint64_t end_seq) {
    EntryReader reader(device_, reader_options());
    const auto allocated = reader.allocate();
    if (!allocated) co_return allocated;
    LogPosition at{.segment = space_.segments().front().number};
    noted_capacity_ = space_.capacity();
    std::uint64_t epoch_min = 0;
    std::uint64_t kept_seq = 0;
    for (std::uint64_t seq = space_.segments().front().first_seq; seq < end_seq; ++seq) {
        const auto found = co_await read_to_clean(&reader, at);
        if (!found) co_return std::unexpected(found.error());
        if (!is_entry(*found, seq, epoch_min)) {
            damage_ = {.first_seq = seq, .last_seq = end_seq - 1};
            co_return std::unexpected(
                Error{.code = Errc::kCorrupt, .context = "entries of the log's oldest segment"});
        }
        epoch_min = (*found)->header.epoch;
        at.block += (*found)->blocks;
        const bool is_mark = (*found)->header.record_count == 0;
        if (is_mark || seq <= cleaned_seq_) continue;
        const auto kept = co_await visitor->keep((*found)->entry);
        if (!kept && kept.error().code == Errc::kNoSpace && kept_seq > cleaned_seq_) {
            // The next attempt must not commit the same records again.
            const auto noted = co_await note_cleaned(kept_seq);
            if (!noted) co_return noted;
        }
        if (!kept) co_return kept;
        kept_seq = seq;
        noted_capacity_ = std::max(noted_capacity_, space_.capacity());  // The log may grow.
        if (!is_cleaned_note_due()) continue;
        const auto noted = co_await note_cleaned(seq);
        if (!noted) co_return noted;
    }
    co_return Result<void>{};
}

// A start that does not know how far cleaning had come commits the whole segment again. Where there
// is little room this must not cost much, however often the power fails.
bool Log::is_cleaned_note_due() const {
    return space_.very_low() && space_.capacity() + space_.worth_noting() <= noted_capacity_;
}

Task<Result<void>> Log::note_cleaned(std::uint64_t seq) {
    const auto synced = co_await sync({});
    if (!synced) co_return synced;
    cleaned_seq_ = seq;
    co_await lock_superblock();
    const auto written = co_await write_superblock(current_superblock());
    unlock_superblock();
    noted_capacity_ = space_.capacity();
    co_return written;
}

Task<Result<void>> Log::drop_oldest() {
    if (failed() != nullptr) co_return std::unexpected(*failed());
    if (is_closing()) co_return std::unexpected(closed_error());
    Superblock superblock = current_superblock();
    superblock.cleaned_seq = 0;
    const std::uint32_t oldest = superblock.segments.front().number;
    superblock.segments.erase(superblock.segments.begin());
    const bool stays = superblock.segments.size() < segments_max_ || !space_.is_ample();
    if (stays) superblock.segments.push_back({.number = oldest});
    const auto written = co_await write_superblock(std::move(superblock));
    if (!written) co_return written;
    cleaned_seq_ = 0;
    space_.remove_oldest();
    if (stays) {
        space_.add(oldest);
    } else {
        filled_.erase(oldest);
        source_.give_back_segment(oldest);
    }
    co_return Result<void>{};
}

}  // namespace fopd::store
