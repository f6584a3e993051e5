#include "store/log_replay.h"

#include <algorithm>

namespace fopd::store {

LogReplay::LogReplay(core::Reactor& reactor, EntryReader& reader, const Superblock& superblock,
                     const ReplayOptions& options)
    : reactor_(reactor),
      reader_(reader),
      superblock_(superblock),
      options_(options),
      segments_(superblock.segments),
      recorded_seq_(superblock.trusted_seq) {}

Task<Result<LogReplay::Outcome>> LogReplay::run(ReplayVisitor* visitor) {
    const std::uint64_t tail_seq = segments_.front().first_seq;
    if (options_.applied_seq != 0 && options_.applied_seq + 1 < tail_seq) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "the index is older than the log's tail"});
    }
    choose_start();
    cursor_ = start_;
    const auto ended = co_await find_end();
    if (!ended) co_return std::unexpected(ended.error());
    const bool deliverable =
        damage_.first_seq == 0 || options_.mode == ReplayOptions::Mode::kReadOnly;
    if (deliverable && cursor_.seq > options_.applied_seq + 1) {
        const auto delivered = co_await deliver(visitor);
        if (!delivered) co_return std::unexpected(delivered.error());
    }
    co_return outcome();
}

// Starts at the last segment that begins with an entry that the index has applied: that entry was
// flushed, so its position is certain. The superblock may list first entries of later segments that
// never became durable.
void LogReplay::choose_start() {
    for (std::size_t i = 1; i < segments_.size(); ++i) {
        const std::uint64_t first_seq = segments_[i].first_seq;
        if (first_seq != 0 && first_seq <= options_.applied_seq) start_.index = i;
    }
    start_.seq = segments_[start_.index].first_seq;
    for (std::size_t i = start_.index + 1; i < segments_.size(); ++i) segments_[i].first_seq = 0;
}

bool LogReplay::continues(const EntryHeader& header) const {
    if (header.seq != cursor_.seq || header.epoch < cursor_.epoch) return false;
    if (header.seq >= superblock_.epoch_first_seq) return header.epoch == superblock_.epoch;
    return header.epoch < superblock_.epoch;
}

// The next entry of the chain; moves the cursor behind it. At the end: nothing, and the cursor
// stays.
Task<Result<std::optional<EntryReader::Found>>> LogReplay::step() {
    Cursor at = cursor_;
    auto found = co_await reader_.at(position(at));
    if (!found) co_return std::unexpected(found.error());
    const bool here = found->has_value() && continues((*found)->header);
    if (!here) {
        const std::optional<EntryReader::Found> none;
        if (at.block == 0 || at.index + 1 == segments_.size()) co_return none;
        ++at.index;
        at.block = 0;
        found = co_await reader_.at(position(at));
        if (!found) co_return std::unexpected(found.error());
        if (!found->has_value() || !continues((*found)->header)) co_return none;
    }
    const EntryReader::Found& entry = **found;
    cursor_ = {.index = at.index,
               .block = at.block + entry.blocks,
               .seq = entry.header.seq + 1,
               .epoch = entry.header.epoch};
    if (at.block == 0) segments_[at.index].first_seq = entry.header.seq;
    co_return found;
}

Task<Result<void>> LogReplay::find_end() {
    for (;;) {
        const auto found = co_await step();
        if (!found) co_return std::unexpected(found.error());
        if (!found->has_value()) break;
        recorded_seq_ = std::max(recorded_seq_, (*found)->header.mark);
        co_await reactor_.maybe_yield();
    }
    trusted_seq_ = std::max({recorded_seq_, options_.applied_seq, options_.flushed_seq});
    if (cursor_.seq <= trusted_seq_) {
        const bool is_older = cursor_.seq > recorded_seq_;
        note_damage(trusted_seq_, is_older
                                      ? "an older copy: the index or the names have later entries"
                                      : "flushed entries of the log are missing");
        co_return Result<void>{};
    }
    co_return co_await look_behind_end();
}

Task<Result<void>> LogReplay::look_behind_end() {
    std::uint32_t from_block = cursor_.block;
    for (std::size_t index = cursor_.index; index < segments_.size(); ++index) {
        const auto scanned = co_await scan_segment(index, from_block);
        if (!scanned) co_return std::unexpected(scanned.error());
        if (scanned->later_epoch) {
            note_damage(scanned->flushed_seq, "the superblock is older than the log");
        } else if (scanned->flushed_seq >= cursor_.seq) {
            note_damage(scanned->flushed_seq, "flushed entries of the log are damaged");
        }
        // The missing entry may have been the last of its segment.
        if (!scanned->any && index > cursor_.index) break;
        from_block = 0;
    }
    co_return Result<void>{};
}

Task<Result<LogReplay::Scanned>> LogReplay::scan_segment(std::size_t index,
                                                         std::uint32_t from_block) {
    Scanned scanned;
    LogPosition at{.segment = segments_[index].number, .block = from_block};
    while (at.block < superblock_.segment_blocks) {
        const auto found = co_await reader_.at(at);
        if (!found) co_return std::unexpected(found.error());
        std::uint32_t step_blocks = 1;
        if (found->has_value()) {
            const EntryHeader& header = (*found)->header;
            step_blocks = (*found)->blocks;
            if (header.seq >= cursor_.seq && header.epoch >= superblock_.epoch) {
                scanned.any = true;
                const bool later = header.epoch > superblock_.epoch;
                scanned.later_epoch = scanned.later_epoch || later;
                const std::uint64_t flushed = later ? header.seq : header.mark;
                scanned.flushed_seq = std::max(scanned.flushed_seq, flushed);
            }
        }
        at.block += step_blocks;
        co_await reactor_.maybe_yield();
    }
    co_return scanned;
}

Task<Result<void>> LogReplay::deliver(ReplayVisitor* visitor) {
    const std::uint64_t end = cursor_.seq;
    cursor_ = start_;
    while (cursor_.seq < end) {
        const Cursor before = cursor_;
        const auto found = co_await step();
        if (!found) co_return std::unexpected(found.error());
        if (!found->has_value()) {
            co_return std::unexpected(
                Error{.code = Errc::kCorrupt,
                      .context = "repeated reads of a log entry return different bytes"});
        }
        const auto counts = co_await deliver_one(visitor, **found);
        if (!counts) co_return std::unexpected(counts.error());
        if (!*counts) {
            cursor_ = before;
            break;
        }
        co_await reactor_.maybe_yield();
    }
    co_return Result<void>{};
}

// False: the entry does not count, and the log ends before it.
Task<Result<bool>> LogReplay::deliver_one(ReplayVisitor* visitor, EntryReader::Found found) const {
    if (found.header.seq <= options_.applied_seq) co_return true;
    if (found.header.seq > trusted_seq_) {
        const auto data_ok = co_await visitor->data_ok(found.entry);
        if (!data_ok || !*data_ok) co_return data_ok;
    }
    const auto replayed = co_await visitor->replay(found.entry);
    if (!replayed) co_return std::unexpected(replayed.error());
    co_return true;
}

void LogReplay::note_damage(std::uint64_t last_seq, const char* reason) {
    damage_ = {.first_seq = cursor_.seq, .last_seq = std::max(last_seq, damage_.last_seq)};
    damage_reason_ = reason;
}

LogReplay::Outcome LogReplay::outcome() const {
    Outcome outcome{.last_seq = cursor_.seq - 1,
                    .trusted_seq = std::min(trusted_seq_, cursor_.seq - 1),
                    .segments = segments_,
                    .head = cursor_.index,
                    .head_block = cursor_.block,
                    .damage = damage_,
                    .damage_reason = damage_reason_};
    // Segments behind the head are empty, even if entries that do not count were found there.
    for (std::size_t i = outcome.head + 1; i < outcome.segments.size(); ++i) {
        outcome.segments[i].first_seq = 0;
    }
    return outcome;
}

}  // namespace fopd::store
