// Opening and closing, superblocks, growth, cleaning.

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/log_core.h"

namespace fopd::store {

namespace {

std::uint64_t segments_on(const devices::Geometry& geometry, std::uint32_t segment_blocks) {
    const std::uint64_t blocks = geometry.size_bytes / devices::kBlockBytes;
    if (blocks < Log::kSegmentsBlock) return 0;
    return (blocks - Log::kSegmentsBlock) / segment_blocks;
}

constexpr std::uint32_t kZeroBlocks = 64;

}  // namespace

// -- opening and closing --

Task<Result<void>> LogCore::format(std::vector<std::uint32_t> segments) {
    ENSURE(segments.size() >= Log::kSegmentsMin);
    ENSURE(segments.size() <= Log::kSegmentsMax);
    const auto copies = copies_.allocate();
    if (!copies) co_return std::unexpected(copies.error());
    Superblock superblock{.disk_id = options_.disk_id,
                          .schema_version = options_.schema.version,
                          .segment_blocks = options_.segment_blocks,
                          .generation = 1,
                          .epoch = 1,
                          .epoch_first_seq = 1,
                          .clean = true};
    for (const std::uint32_t number : segments) superblock.segments.push_back({.number = number});
    superblock.segments.front().first_seq = 1;
    const auto sane = check(superblock);
    if (!sane) co_return std::unexpected(Error{.code = Errc::kInvalid, .context = "log segments"});
    co_return co_await write_superblock(std::move(superblock));
}

Task<Result<Replayed>> LogCore::open(ReplayVisitor* visitor, ReplayOptions options) {
    ENSURE(!serving_);
    const auto copies = copies_.allocate();
    if (!copies) co_return std::unexpected(copies.error());
    const auto superblock = co_await copies_.read(options_.disk_id);
    if (!superblock) co_return std::unexpected(superblock.error());
    const auto sane = check(*superblock);
    if (!sane) co_return std::unexpected(sane.error());

    EntryReader reader(device_, {.id = options_.disk_id,
                                 .schema = options_.schema,
                                 .segment_blocks = options_.segment_blocks,
                                 .entry_blocks_max = options_.entry_blocks_max});
    const auto allocated = reader.allocate();
    if (!allocated) co_return std::unexpected(allocated.error());
    LogReplay replay(reactor_, reader, *superblock, options);
    const auto outcome = co_await replay.run(visitor);
    if (!outcome) co_return std::unexpected(outcome.error());
    damage_ = outcome->damage;
    take_over(*superblock, *outcome);
    applied_ = options.applied_seq;
    if (options.mode == ReplayOptions::Mode::kServe) {
        if (damage_.first_seq != 0) {
            co_return std::unexpected(
                Error{.code = Errc::kCorrupt, .context = outcome->damage_reason});
        }
        const auto begun = co_await begin_epoch();
        if (!begun) co_return std::unexpected(begun.error());
    }
    co_return Replayed{.last_seq = outcome->last_seq,
                       .trusted_seq = outcome->trusted_seq,
                       .clean = superblock->clean && damage_.first_seq == 0,
                       .schema_version = superblock->schema_version};
}

Result<void> LogCore::check(const Superblock& superblock) const {
    const auto refused = [](Errc code, const char* why) {
        return std::unexpected(Error{.code = code, .context = why});
    };
    if (superblock.schema_version > options_.schema.version) {
        return refused(Errc::kUnsupported, "the store is of a newer version");
    }
    if (superblock.segment_blocks != options_.segment_blocks) {
        return refused(Errc::kCorrupt, "segment size of the superblock");
    }
    if (superblock.segments.size() > Log::kSegmentsMax) {
        return refused(Errc::kCorrupt, "number of segments of the log");
    }
    const std::uint64_t count = segments_on(device_.geometry(), superblock.segment_blocks);
    const auto beyond_end = [count](const LogSegment& segment) { return segment.number >= count; };
    if (std::ranges::any_of(superblock.segments, beyond_end)) {
        return refused(Errc::kCorrupt, "the disk ends before its log does");
    }
    return {};
}

void LogCore::take_over(const Superblock& superblock, LogReplay::Outcome outcome) {
    generation_ = superblock.generation;
    epoch_ = superblock.epoch;
    epoch_first_seq_ = superblock.epoch_first_seq;
    earlier_first_seqs_ = superblock.earlier_first_seqs;
    schema_version_ = superblock.schema_version;
    cleaned_seq_ = superblock.cleaned_seq;
    retired_ = complete_ = complete_mark_ = durable_ = trusted_ = closed_ = outcome.last_seq;
    last_records_seq_ = flush_wanted_ = sync_wanted_ = outcome.last_seq;
    space_.restore(std::move(outcome.segments), outcome.head, outcome.head_block);
}

// Makes the end of the log, which is known now, a fact on the disk. First that what was read is
// durable: it may have come from the cache of a device that had no flush since, and a superblock
// that trusts it must not survive it. The blocks in which the next entry can begin are cleared, so
// that a leftover with its number never passes for it; what lies behind it and is of an older epoch
// cannot follow an entry of the new one. The new epoch then shuts out all that is left over.
Task<Result<void>> LogCore::begin_epoch() {
    auto memory =
        AlignedMemory::allocate(kSlots * options_.entry_blocks_max * devices::kBlockBytes);
    if (!memory) co_return std::unexpected(memory.error());
    memory_ = std::move(*memory);
    auto zeros = AlignedMemory::allocate(kZeroBlocks * devices::kBlockBytes);
    if (!zeros) co_return std::unexpected(zeros.error());
    zeros_ = std::move(*zeros);
    std::memset(zeros_.span().data(), 0, zeros_.span().size());
    for (std::size_t i = 0; i < kSlots; ++i) {
        const std::size_t size = options_.entry_blocks_max * devices::kBlockBytes;
        slots_[i].buffer = {.data = memory_.span().data() + i * size, .size_bytes = size};
    }

    const std::vector<LogSegment>& segments = space_.segments();
    if (space_.head_block() < options_.segment_blocks) {
        const LogPosition head{.segment = segments[space_.head()].number,
                               .block = space_.head_block()};
        const auto cleared = co_await clear_block(head);
        if (!cleared) co_return cleared;
    }
    if (space_.free_count() > 0) {
        const LogPosition next{.segment = segments[space_.head() + 1].number};
        const auto cleared = co_await clear_block(next);
        if (!cleared) co_return cleared;
    }
    co_await fill_head();
    const auto flushed = co_await flush_device();
    if (!flushed) co_return flushed;
    ++epoch_;
    std::shift_right(earlier_first_seqs_.begin(), earlier_first_seqs_.end(), 1);
    earlier_first_seqs_.front() = std::exchange(epoch_first_seq_, closed_ + 1);
    schema_version_ = options_.schema.version;
    const auto written = co_await write_superblock(current_superblock());
    if (!written) co_return written;
    serving_ = true;
    look_after_space();
    fill_ahead();
    co_return Result<void>{};
}

Task<Result<void>> LogCore::clear_block(LogPosition position) {
    core::Buffer block = zeros_.buffer();
    block.size_bytes = devices::kBlockBytes;
    const auto written =
        co_await device_.write(block, byte_offset(position, options_.segment_blocks));
    if (!written) fail(written.error(), "write to the log");
    co_return written;
}

Task<Result<void>> LogCore::close() {
    closing_ = true;  // Nobody gets a reservation any more.
    filler_.stop();
    disarm();
    wake_room();
    cleaning_.wake_all();
    if (serving_) {
        co_await lock_superblock();
        const auto written = co_await write_last_superblock();
        unlock_superblock();
        // The log has failed then, which is said below.
        if (!written) ENSURE(failed_.has_value());
    }
    co_await gate_.close(reactor_);
    serving_ = false;
    if (failed_) co_return std::unexpected(failure());
    co_return Result<void>{};
}

Task<Result<void>> LogCore::write_last_superblock() {
    while (durable_ < begun_seq()) {
        const auto synced = co_await sync({});  // It ends or the log fails.
        if (!synced) co_return synced;
    }
    if (failed_) co_return std::unexpected(failure());
    Superblock superblock = current_superblock();
    superblock.clean = true;
    co_return co_await write_superblock(std::move(superblock));
}

// -- superblocks --

std::optional<std::uint64_t> LogCore::last_seq_of(std::uint64_t epoch) const {
    if (epoch >= epoch_) return std::nullopt;
    const std::uint64_t back = epoch_ - epoch - 1;  // Of the epoch after it.
    if (back > earlier_first_seqs_.size()) return std::nullopt;
    const std::uint64_t next = back == 0 ? epoch_first_seq_ : earlier_first_seqs_[back - 1];
    if (next == 0) return std::nullopt;
    return next - 1;
}

Superblock LogCore::current_superblock() const {
    return {.disk_id = options_.disk_id,
            .schema_version = schema_version_,
            .segment_blocks = options_.segment_blocks,
            .generation = generation_ + 1,
            .epoch = epoch_,
            .epoch_first_seq = epoch_first_seq_,
            .earlier_first_seqs = earlier_first_seqs_,
            .trusted_seq = durable_,
            .cleaned_seq = cleaned_seq_,
            .segments = space_.segments()};
}

// In force when it returns. Requires: the lock, or that nobody else is there.
Task<Result<void>> LogCore::write_superblock(Superblock superblock) {
    generation_ = superblock.generation;
    entered_since_superblock_ = 0;
    for (unsigned copy = 0; copy < SuperblockCopies::kCount; ++copy) {
        const auto written = co_await copies_.write(copy, superblock);
        if (!written) {
            fail(written.error(), "write of the superblock");
            co_return std::unexpected(failure());
        }
        const auto flushed = co_await flush_device();
        if (!flushed) co_return flushed;
    }
    trusted_ = std::max(trusted_, superblock.trusted_seq);
    progress_.wake_all();
    co_return Result<void>{};
}

Task<void> LogCore::lock_superblock() {
    while (superblock_locked_) {
        const auto woken = co_await superblock_free_.wait({});  // Its holder waits for the device.
        ENSURE(woken.has_value());
    }
    superblock_locked_ = true;
}

void LogCore::unlock_superblock() {
    superblock_locked_ = false;
    superblock_free_.wake_one();
}

// -- growth --

void LogCore::set_applied(std::uint64_t seq) {
    applied_ = std::max(applied_, seq);
}

void LogCore::set_segments_max(std::uint32_t count) {
    ENSURE(count <= Log::kSegmentsMax);
    segments_max_ = count;
    ask_source_again();
    look_after_space();
}

void LogCore::set_live_bytes(std::uint64_t bytes) {
    live_bytes_ = bytes;
    const std::uint64_t worth = space_.worth_cleaning() * devices::kBlockBytes;
    if (exhausted_ && live_bytes_ + worth <= exhausted_live_bytes_) {
        exhausted_ = false;
    }
    look_after_space();
}

bool LogCore::growth_due() const {
    const std::size_t count = space_.segments().size();
    if (count >= Log::kSegmentsMax) return false;
    if (starving_) return !source_dry_;
    if (source_empty_) return false;
    return (count < segments_max_ && space_.low()) || (exhausted_ && space_.very_low());
}

// What lives has become less. Where all the room is ahead, the newest segments go; before, cleaning
// brings the room there.
bool LogCore::shrinking_due() const {
    return space_.segments().size() > segments_max_ && space_.is_ample() &&
           space_.free_count() > 1 && !space_.is_held() && !growth_due();
}

void LogCore::look_after_space() {
    if (!serving_ || closing_ || failed_ || upkeep_runs_) return;
    if (growth_due() || shrinking_due() || superblock_due()) {
        upkeep_runs_ = true;
        spawn(look_after_space_until_done());
    } else if (cleaning_wanted()) {
        cleaning_.wake_all();
    }
}

Task<void> LogCore::look_after_space_until_done() {
    co_await lock_superblock();
    while (!failed_ && !closing_) {
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

// The segment is listed durably before it is used. It is cleared before: what stood there may look
// like entries, and space that was written once is faster in files. Where there is no room for
// that, the log stays as it is.
Task<Result<void>> LogCore::grow() {
    const auto need = starving_ ? SegmentNeed::kToGoOn : SegmentNeed::kMore;
    const auto taken = source_.take_segment(need);
    starving_ = false;
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

// Nobody comes to the segment before the superblock that does not name it is in force.
Task<Result<void>> LogCore::shrink() {
    const std::uint32_t newest = space_.segments().back().number;
    space_.remove_newest();
    const auto written = co_await write_superblock(current_superblock());
    if (!written) co_return written;
    filled_.erase(newest);
    source_.give_back_segment(newest);
    co_return Result<void>{};
}

Task<Result<void>> LogCore::zero_segment(std::uint32_t segment) {
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

// -- cleaning --

// Whether the index has all that the oldest segment holds.
bool LogCore::is_oldest_applied() const {
    return space_.head() > 0 && space_.segments()[1].first_seq <= applied_ + 1;
}

bool LogCore::cleaning_wanted() const {
    if (!serving_ || failed_ || space_.head() == 0 || growth_due()) return false;
    // A delete that waits for room is worth a round as soon as anything has changed.
    const bool may_gain =
        !exhausted_ || (waiting_to_free_ > 0 && changed_blocks_ != round_changed_blocks_);
    if (!may_gain) return false;
    const bool is_long = space_.segments().size() > segments_max_ && !space_.is_ample();
    return space_.very_low() || is_long;
}

Task<Result<void>> LogCore::wait_cleaning_wanted(core::WaitOptions wait) {
    while (!cleaning_wanted()) {
        if (failed_) co_return std::unexpected(failure());
        if (closing_) co_return std::unexpected(closed_error());
        const auto woken = co_await cleaning_.wait(wait);
        if (!woken) co_return woken;
    }
    co_return Result<void>{};
}

Task<Result<void>> LogCore::clean(CleanVisitor* visitor) {
    ENSURE(serving_);
    if (failed_) co_return std::unexpected(failure());
    if (space_.head() == 0) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the log is in its only segment"});
    }
    begin_round();
    if (!is_oldest_applied()) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the index does not hold the oldest segment"});
    }
    const std::uint64_t end_seq = space_.segments()[1].first_seq;
    const auto handed_out = co_await hand_out_oldest(visitor, end_seq);
    if (!handed_out && handed_out.error().code == Errc::kNoSpace) end_round();
    if (!handed_out) co_return handed_out;
    // What was committed again is durable before what it was is gone.
    const auto synced = co_await sync({});
    if (!synced) co_return synced;
    co_await lock_superblock();
    const auto dropped = co_await drop_oldest();
    unlock_superblock();
    const bool is_whole = space_.segments().front().first_seq > round_last_seq_;
    ask_source_again();
    if (dropped && is_whole) {
        in_round_ = false;
        if (!is_another_round_worth_it()) end_round();
    }
    if (has_space_to_add()) full_ = false;
    wake_room();
    look_after_space();
    co_return dropped;
}

void LogCore::begin_round() {
    if (in_round_) return;
    in_round_ = true;
    round_changed_blocks_ = changed_blocks_;
    round_live_bytes_ = live_bytes_;
    round_last_seq_ = begun_seq();
    exhausted_ = false;
}

// Each changed block may be dead by now, and so may what the changes replaced.
bool LogCore::is_another_round_worth_it() const {
    const std::uint64_t worth = space_.worth_cleaning();
    return changed_blocks_ - round_changed_blocks_ >= worth ||
           live_bytes_ + worth * devices::kBlockBytes <= round_live_bytes_;
}

void LogCore::end_round() {
    in_round_ = false;
    round_changed_blocks_ = changed_blocks_;
    exhausted_ = true;
    exhausted_capacity_ = space_.capacity();
    exhausted_live_bytes_ = live_bytes_;
    full_ = !has_space_to_add();
    wake_room();
}

Task<Result<void>> LogCore::hand_out_oldest(CleanVisitor* visitor, std::uint64_t end_seq) {
    EntryReader reader(device_, {.id = options_.disk_id,
                                 .schema = options_.schema,
                                 .segment_blocks = options_.segment_blocks,
                                 .entry_blocks_max = options_.entry_blocks_max});
    const auto allocated = reader.allocate();
    if (!allocated) co_return allocated;
    LogPosition at{.segment = space_.segments().front().number};
    noted_capacity_ = space_.capacity();
    std::uint64_t epoch = 0;
    std::uint64_t kept_seq = 0;
    for (std::uint64_t seq = space_.segments().front().first_seq; seq < end_seq; ++seq) {
        const auto found = co_await reader.at(at);
        if (!found) co_return std::unexpected(found.error());
        const bool right = found->has_value() && (*found)->header.seq == seq &&
                           (*found)->header.epoch >= epoch && (*found)->header.epoch <= epoch_;
        if (!right) {
            damage_ = {.first_seq = seq, .last_seq = end_seq - 1};
            co_return std::unexpected(
                Error{.code = Errc::kCorrupt, .context = "entries of the log's oldest segment"});
        }
        epoch = (*found)->header.epoch;
        at.block += (*found)->blocks;
        const bool is_mark = (*found)->header.record_count == 0;
        if (is_mark || seq <= cleaned_seq_) continue;
        const auto kept = co_await visitor->keep((*found)->entry);
        if (!kept && kept.error().code == Errc::kNoSpace && kept_seq > cleaned_seq_) {
            // What was committed again must not be once more when there is room.
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

// A start that does not know how far cleaning had come commits everything again once more. Where
// there is little room it must not cost much, however often the power goes.
bool LogCore::is_cleaned_note_due() const {
    return space_.very_low() && space_.capacity() + space_.worth_noting() <= noted_capacity_;
}

Task<Result<void>> LogCore::note_cleaned(std::uint64_t seq) {
    const auto synced = co_await sync({});
    if (!synced) co_return synced;
    cleaned_seq_ = seq;
    co_await lock_superblock();
    const auto written = co_await write_superblock(current_superblock());
    unlock_superblock();
    noted_capacity_ = space_.capacity();
    co_return written;
}

Task<Result<void>> LogCore::drop_oldest() {
    if (failed_) co_return std::unexpected(failure());
    if (closing_) co_return std::unexpected(closed_error());
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
