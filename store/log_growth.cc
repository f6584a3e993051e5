// How the log grows, and how it makes room when it is nearly full.

#include <algorithm>

#include "store/log.h"

namespace fopd::store {

std::optional<Error> Log::make_room(RoomWanted wanted) {
    // There may be an empty segment by now; each reservation asks for it once.
    if (wanted.is_first) ask_source_again();
    look_after_space();
    const std::optional<Error> why_not = why_no_room(wanted.purpose);
    if (why_not) {
        rounds_.note_refusal();
    } else if (has_waiting_for_space() && background_read_) {
        background_read_->cancel();
    }
    return why_not;
}

// An error when nothing in progress will make room.
std::optional<Error> Log::why_no_room(Purpose purpose) const {
    if (upkeep_runs_) return std::nullopt;
    const bool cleans = purpose == Purpose::kCleaning;
    const bool may_clean = cleaning_wanted() && is_oldest_applied();
    if (!cleans && stalled_ && !may_clean) return stalled_;
    if (may_regain_room()) return std::nullopt;
    if (!cleans && (!rounds_.is_exhausted() || cleaning_wanted())) return std::nullopt;
    return Error{.code = Errc::kNoSpace, .context = "the log of its disk is full"};
}

void Log::stall(const Error& why) {
    stalled_ = why;
    wake_room();
}

void Log::segment_entered() {
    ++entered_since_superblock_;
    ask_source_again();
    look_after_space();
    fill_ahead();
}

std::vector<std::uint32_t> Log::segments() const {
    std::vector<std::uint32_t> numbers;
    for (const LogSegment& segment : space_.segments()) numbers.push_back(segment.number);
    return numbers;
}

LogSpaceFigures Log::space() const {
    return {.segments = static_cast<std::uint32_t>(space_.segments().size()),
            .segments_free = static_cast<std::uint32_t>(space_.free_count()),
            .segments_max = segments_max_};
}

void Log::set_applied(std::uint64_t seq) {
    applied_ = std::max(applied_, seq);
}

void Log::set_segments_max(std::uint32_t count) {
    ENSURE(count <= Log::kSegmentsMax);
    segments_max_ = count;
    ask_source_again();
    look_after_space();
}

void Log::set_live_bytes(std::uint64_t bytes) {
    rounds_.set_live_bytes(bytes);
    look_after_space();
}

bool Log::growth_due() const {
    const std::size_t count = space_.segments().size();
    if (count >= Log::kSegmentsMax) return false;
    if (has_stuck()) return !source_dry_;
    if (source_empty_) return false;
    return (count < segments_max_ && space_.low()) || (rounds_.is_exhausted() && space_.very_low());
}

// The live records have become fewer. When all free room is ahead of the log, the newest segments
// are returned; until then cleaning moves the room there.
bool Log::shrinking_due() const {
    return space_.segments().size() > segments_max_ && space_.is_ample() &&
           space_.free_count() > 1 && !space_.is_held() && !growth_due();
}

void Log::look_after_space() {
    if (!is_serving() || is_closing() || failed() != nullptr || upkeep_runs_) return;
    if (growth_due() || shrinking_due() || superblock_due()) {
        upkeep_runs_ = true;
        spawn(look_after_space_until_done());
    } else if (cleaning_wanted()) {
        cleaning_.wake_all();
    }
}

Task<void> Log::look_after_space_until_done() {
    co_await lock_superblock();
    while (failed() == nullptr && !is_closing()) {
        Result<void> done{};
        if (growth_due()) {
            done = co_await grow();
        } else if (shrinking_due()) {
            done = co_await shrink();
        } else if (superblock_due()) {
            done = co_await write_superblock(current_superblock());
        } else {
            break;
        }
        if (!done) break;  // The log has failed.
    }
    unlock_superblock();
    upkeep_runs_ = false;
    wake_room();
    if (cleaning_wanted()) cleaning_.wake_all();
}

// The segment is listed durably before it is used. It is cleared before that: its old content may
// look like entries, and blocks of a file are faster once they were written. If the file system has
// no room for that, the log does not grow.
Task<Result<void>> Log::grow() {
    const auto need = has_stuck() ? SegmentNeed::kToGoOn : SegmentNeed::kMore;
    const auto taken = source_.take_segment(need);
    if (!taken) {
        source_empty_ = true;
        source_dry_ = need == SegmentNeed::kToGoOn;
        co_return Result<void>{};
    }
    const auto zeroed = co_await zero_segment(*taken);
    if (!zeroed && zeroed.error().code == Errc::kNoSpace) {
        source_.give_back_segment(*taken);
        source_empty_ = source_dry_ = true;
        co_return Result<void>{};
    }
    if (!zeroed) {
        fail(zeroed.error(), "write to the log");
        co_return zeroed;
    }
    const auto flushed = co_await flush_device();
    if (!flushed) co_return flushed;
    Superblock superblock = current_superblock();
    superblock.segments.push_back({.number = *taken});
    const auto written = co_await write_superblock(std::move(superblock));
    if (!written) co_return written;
    space_.add(*taken);
    filled_.insert(*taken);
    wake_room();
    co_return Result<void>{};
}

// The segment is returned only when the superblock that does not list it is durable.
Task<Result<void>> Log::shrink() {
    const std::uint32_t newest = space_.segments().back().number;
    space_.remove_newest();
    const auto written = co_await write_superblock(current_superblock());
    if (!written) co_return written;
    filled_.erase(newest);
    source_.give_back_segment(newest);
    co_return Result<void>{};
}

Task<Result<void>> Log::zero_segment(std::uint32_t segment) {
    for (std::uint32_t block = 0; block < options_.segment_blocks; block += kZeroBlocks) {
        const std::uint32_t count = std::min(kZeroBlocks, options_.segment_blocks - block);
        core::Buffer zeros = zeros_.buffer();
        zeros.size_bytes = count * devices::kBlockBytes;
        const LogPosition at{.segment = segment, .block = block};
        const auto written =
            co_await device_.write(zeros, byte_offset(at, options_.segment_blocks));
        if (!written) co_return written;
    }
    co_return Result<void>{};
}

}  // namespace fopd::store
