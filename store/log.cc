#include "store/log.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fopd::store {

static_assert(Log::kSegmentsMax <= kSuperblockSegmentsMax);

std::uint32_t Log::segments_on(const devices::Geometry& geometry, std::uint32_t segment_blocks) {
    const std::uint64_t blocks = geometry.size_bytes / devices::kBlockBytes;
    if (blocks < kSegmentsBlock) return 0;
    return static_cast<std::uint32_t>((blocks - kSegmentsBlock) / segment_blocks);
}

Log::Log(core::Reactor& reactor, devices::Device& device, SegmentSource& source,
         const LogOptions& options, devices::Device* background)
    : CommitPath(reactor, device, options),
      background_(background != nullptr ? *background : device),
      source_(source),
      copies_(device),
      filler_(device),
      segments_max_(options.segments_max),
      superblock_free_(reactor),
      cleaning_(reactor) {
    ENSURE(options.segments_max <= kSegmentsMax);
}

EntryReader::Options Log::reader_options() const {
    return {.id = options_.disk_id,
            .schema = options_.schema,
            .segment_blocks = options_.segment_blocks,
            .entry_blocks_max = options_.entry_blocks_max};
}

// Whether this is the log's entry `seq`, which follows an entry of the epoch `epoch_min`.
bool Log::is_entry(const std::optional<EntryReader::Found>& found, std::uint64_t seq,
                   std::uint64_t epoch_min) const {
    return found && found->header.seq == seq && found->header.epoch >= epoch_min &&
           found->header.epoch <= epoch();
}

// -- opening and closing --

Task<Result<void>> Log::format(std::vector<std::uint32_t> segments) {
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

Task<Result<Replayed>> Log::open(ReplayVisitor* visitor, ReplayOptions options) {
    ENSURE(!is_serving());
    const auto copies = copies_.allocate();
    if (!copies) co_return std::unexpected(copies.error());
    const auto superblock = co_await copies_.read(options_.disk_id);
    if (!superblock) co_return std::unexpected(superblock.error());
    const auto sane = check(*superblock);
    if (!sane) co_return std::unexpected(sane.error());

    EntryReader reader(device_, reader_options());
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

Result<void> Log::check(const Superblock& superblock) const {
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
    const std::uint32_t count = segments_on(device_.geometry(), superblock.segment_blocks);
    const auto beyond_end = [count](const LogSegment& segment) { return segment.number >= count; };
    if (std::ranges::any_of(superblock.segments, beyond_end)) {
        return refused(Errc::kCorrupt, "the disk ends before its log does");
    }
    return {};
}

void Log::take_over(const Superblock& superblock, LogReplay::Outcome outcome) {
    generation_ = superblock.generation;
    set_epoch(superblock.epoch, superblock.schema_version);
    epoch_first_seq_ = superblock.epoch_first_seq;
    earlier_first_seqs_ = superblock.earlier_first_seqs;
    cleaned_seq_ = superblock.cleaned_seq;
    continue_behind(outcome.last_seq);
    space_.restore(std::move(outcome.segments), outcome.head, outcome.head_block);
}

// Makes the end of the log, which is known now, a fact on the disk. First, everything that was read
// becomes durable: it may have come from the cache of a device that was not flushed since, and a
// superblock that trusts it must not survive it. Second, the blocks in which the next entry can
// begin are cleared, so that an old entry with its number is never taken for it; an old entry
// behind it belongs to an older epoch and cannot follow an entry of the new one. The new epoch then
// excludes all old entries.
Task<Result<void>> Log::begin_epoch() {
    const auto entries = allocate_entries();
    if (!entries) co_return entries;
    auto zeros = AlignedMemory::allocate(kZeroBlocks * devices::kBlockBytes);
    if (!zeros) co_return std::unexpected(zeros.error());
    zeros_ = std::move(*zeros);
    std::memset(zeros_.span().data(), 0, zeros_.span().size());

    const auto cleared = co_await clear_next_blocks();
    if (!cleared) co_return cleared;
    co_await fill_head();
    const auto flushed = co_await flush_device();
    if (!flushed) co_return flushed;
    set_epoch(epoch() + 1, options_.schema.version);
    std::shift_right(earlier_first_seqs_.begin(), earlier_first_seqs_.end(), 1);
    earlier_first_seqs_.front() = std::exchange(epoch_first_seq_, closed_seq() + 1);
    const auto written = co_await write_superblock(current_superblock());
    if (!written) co_return written;
    serve();
    look_after_space();
    fill_ahead();
    co_return Result<void>{};
}

Task<Result<void>> Log::clear_next_blocks() {
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
    co_return Result<void>{};
}

Task<Result<void>> Log::clear_block(LogPosition position) {
    core::Buffer block = zeros_.buffer();
    block.size_bytes = devices::kBlockBytes;
    const auto written =
        co_await device_.write(block, byte_offset(position, options_.segment_blocks));
    if (!written) fail(written.error(), "write to the log");
    co_return written;
}

Task<Result<void>> Log::close() {
    begin_close();
    filler_.stop();
    cleaning_.wake_all();
    if (is_serving()) {
        co_await lock_superblock();
        const auto written = co_await write_last_superblock();
        unlock_superblock();
        // The log has failed then, which is returned below.
        if (!written) ENSURE(failed() != nullptr);
    }
    co_await end_close();
    if (failed() != nullptr) co_return std::unexpected(*failed());
    co_return Result<void>{};
}

Task<Result<void>> Log::write_last_superblock() {
    while (durable_seq() < begun_seq()) {
        const auto synced = co_await sync({});  // It ends or the log fails.
        if (!synced) co_return synced;
    }
    if (failed() != nullptr) co_return std::unexpected(*failed());
    Superblock superblock = current_superblock();
    superblock.clean = true;
    co_return co_await write_superblock(std::move(superblock));
}

// -- superblocks --

std::optional<std::uint64_t> Log::last_seq_of(std::uint64_t epoch) const {
    if (epoch >= this->epoch()) return std::nullopt;
    const std::uint64_t back = this->epoch() - epoch - 1;  // To the epoch after it.
    if (back > earlier_first_seqs_.size()) return std::nullopt;
    const std::uint64_t next = back == 0 ? epoch_first_seq_ : earlier_first_seqs_[back - 1];
    if (next == 0) return std::nullopt;
    return next - 1;
}

Superblock Log::current_superblock() const {
    return {.disk_id = options_.disk_id,
            .schema_version = schema_version(),
            .segment_blocks = options_.segment_blocks,
            .generation = generation_ + 1,
            .epoch = epoch(),
            .epoch_first_seq = epoch_first_seq_,
            .earlier_first_seqs = earlier_first_seqs_,
            .trusted_seq = durable_seq(),
            .cleaned_seq = cleaned_seq_,
            .segments = space_.segments()};
}

// The superblock is durable when this returns. REQUIRES: the caller holds the lock, or the log is
// not served yet.
Task<Result<void>> Log::write_superblock(Superblock superblock) {
    generation_ = superblock.generation;
    entered_since_superblock_ = 0;
    for (unsigned copy = 0; copy < SuperblockCopies::kCount; ++copy) {
        const auto written = co_await copies_.write(copy, superblock);
        if (!written) {
            fail(written.error(), "write of the superblock");
            co_return std::unexpected(*failed());
        }
        const auto flushed = co_await flush_device();
        if (!flushed) co_return flushed;
    }
    trust(superblock.trusted_seq);
    co_return Result<void>{};
}

Task<void> Log::lock_superblock() {
    while (superblock_locked_) {
        const auto woken = co_await superblock_free_.wait({});  // Its holder waits for the device.
        ENSURE(woken.has_value());
    }
    superblock_locked_ = true;
}

void Log::unlock_superblock() {
    superblock_locked_ = false;
    superblock_free_.wake_one();
}

}  // namespace fopd::store
