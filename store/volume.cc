#include "store/volume.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/ensure.h"
#include "store/volume_replay.h"
#include "store/volume_view.h"

namespace fopd::store {

namespace {

// Cleared ranges that a new one may contain: they are joined in one turn.
constexpr std::uint32_t kClearedMax = 256;
// The map may grow by this much for each byte of a record.
constexpr std::uint64_t kOverlayReserve = 4;
// How many index changes may wait for a checkpoint while the index has no reserve.
constexpr std::uint64_t kChangesWaitingMax = 256;
// How many index changes one removal makes.
constexpr std::uint64_t kChangesOfRemoval = 3;
// How many extents one change may free while the index has no reserve.
constexpr std::uint32_t kExtentsWithoutReserve = 64;
// The pause before blocks that a read may still use are tried again, because the end of a read
// wakes no waiter.
constexpr Duration kReadWait = 5ms;
// How many segments data leaves to the log, in addition to the segments that the log begins with.
constexpr std::uint32_t kLogReserveSegments = 2;
// How many empty segments the log leaves while more room is only useful. If the log can free or
// clean nothing without another segment, it takes these as well.
constexpr std::uint32_t kLastSegments = 1;
// One part in so many of a segment is kept for the partly zeroed blocks that truncates and punches
// write again.
constexpr std::uint32_t kFreeingReservePart = 16;
// One percent of the disk.
std::uint32_t log_segments(std::uint32_t segments) {
    return std::clamp(segments / 100, Log::kSegmentsMin, Log::kSegmentsMax);
}

LogOptions log_options(const VolumeOptions& options) {
    return {.disk_id = options.disk_id,
            .schema = options.schema,
            .segment_blocks = options.segment_blocks,
            .flush_interval = options.flush_interval,
            .gather_time = options.gather_time,
            .fills_holes = options.zeros_ahead_bytes > 0,
            .entry_blocks_max = std::min(64U, options.segment_blocks / 4)};
}

Discards::Options discard_options(const VolumeOptions& options, const devices::Device& device) {
    const bool fills = device.geometry().slow_holes;
    return {.wanted = options.discard,
            .interval = options.discard_interval,
            .ahead_blocks = fills ? options.zeros_ahead_bytes / devices::kBlockBytes : 0};
}

devices::Device& background_of(const VolumeParts& parts) {
    return parts.background != nullptr ? *parts.background : parts.device;
}

std::unexpected<Error> no_space(const char* what) {
    return std::unexpected(Error{.code = Errc::kNoSpace, .context = what});
}

}  // namespace

Volume::Volume(const VolumeParts& parts, const VolumeOptions& options)
    : reactor_(parts.reactor),
      device_(parts.device),
      events_(parts.events),
      options_(options),
      index_(parts.index),
      map_(parts.reactor, index_),
      log_(parts.reactor, parts.device, *this, log_options(options), &background_of(parts)),
      names_({.reactor = parts.reactor, .index = index_, .map = map_, .sink = parts.names},
             options.disk_id, options.slot),
      applier_(map_, names_, options.sweep.extents_a_turn),
      rules_(map_),
      counter_(parts.reactor, map_),
      released_(parts.reactor),
      zeros_({.reactor = parts.reactor,
              .device = background_of(parts),
              .events = parts.events,
              .released = released_},
             options.zeros_ahead_bytes),
      discards_({.reactor = parts.reactor,
                 .device = background_of(parts),
                 .events = parts.events,
                 .released = released_},
                discard_options(options, parts.device)),
      checkpoint_wanted_(parts.reactor),
      checkpoint_made_(parts.reactor),
      sweep_wanted_(parts.reactor),
      swept_(parts.reactor),
      blocks_used_(parts.reactor) {
    reactor_.add_poller(*this);
}

Volume::~Volume() {
    reactor_.remove_poller(*this);
}

// -- coming and going --

Task<Result<void>> Volume::format() {
    const std::uint32_t count = Log::segments_on(device_.geometry(), options_.segment_blocks);
    if (count < Log::kSegmentsMin + kLogReserveSegments + 1) {
        co_return no_space("a disk of a few segments");
    }
    std::vector<std::uint32_t> segments(log_segments(count));
    for (std::uint32_t i = 0; i < segments.size(); ++i) segments[i] = i;
    co_return co_await log_.format(std::move(segments));
}

Task<Result<void>> Volume::open(Mode mode) {
    const auto ready = co_await bring_up(mode);
    if (!ready) {
        failure_ = ready.error();
        co_return ready;
    }
    if (mode == Mode::kReadOnly) {
        failure_ = {.code = Errc::kDenied, .context = "opened to be read only"};
        co_return Result<void>{};
    }
    serving_ = true;
    note_checkpoint(ready);
    reactor_.spawn(duties_, keep_index_up());
    reactor_.spawn(duties_, keep_log_short());
    reactor_.spawn(duties_, sweep());
    reactor_.spawn(duties_, zeros_.run(&*space_, &stop_));
    reactor_.spawn(duties_, discards_.run(&*space_, &stop_));
    co_return Result<void>{};
}

Task<Result<void>> Volume::bring_up(Mode mode) {
    const auto replay_mode =
        mode == Mode::kServe ? ReplayOptions::Mode::kServe : ReplayOptions::Mode::kReadOnly;
    const auto replayed = co_await replay_log(replay_mode);
    if (!replayed) co_return std::unexpected(replayed.error());
    replayed_ = *replayed;
    const auto counted = co_await count_space(mode);
    if (!counted || mode == Mode::kReadOnly) co_return counted;
    // The log may clean away replayed entries once it serves, so the index has to hold them.
    co_return co_await checkpoint();
}

Task<Result<Replayed>> Volume::replay_log(ReplayOptions::Mode mode) {
    VolumeReplay replay(
        {.device = device_, .index = index_, .names = names_, .applier = applier_, .stop = stop_},
        {.mode = mode, .overlay_bytes = options_.overlay_bytes});
    const auto allocated = replay.allocate();
    if (!allocated) co_return std::unexpected(allocated.error());
    const auto known = co_await names_.ask();
    if (!known) co_return std::unexpected(known.error());
    const ReplayOptions options{
        .applied_seq = index_.applied(), .flushed_seq = *known, .mode = mode};
    co_return co_await log_.open(&replay, options);
}

Task<Result<void>> Volume::close() {
    zeros_.stop();
    stop_.cancel();
    co_await duties_.close(reactor_);
    Result<void> kept{};
    if (serving()) kept = co_await checkpoint();
    serving_ = false;
    const auto closed = co_await log_.close();
    if (!kept) co_return kept;
    co_return closed;
}

// Finds out which blocks are in use: those of the log, and those that extents name.
Task<Result<void>> Volume::count_space(Mode mode) {
    space_.emplace(Allocator::Options{
        .disk_blocks = device_.geometry().size_bytes / devices::kBlockBytes,
        .first_block = Log::kSegmentsBlock,
        .segment_blocks = options_.segment_blocks,
        .freeing_reserve_blocks = options_.segment_blocks / kFreeingReservePart,
    });
    applier_.set_space(&*space_);
    for (const std::uint32_t segment : log_.segments()) {
        const Result<void> taken = space_->take_segment(segment);
        if (!taken) co_return taken;
    }
    const VolumeCensus::Options options{.extents_a_turn = extents_a_turn(),
                                        .bad_extents = mode == Mode::kReadOnly
                                                           ? VolumeCensus::BadExtents::kIgnored
                                                           : VolumeCensus::BadExtents::kRefused};
    const auto counted = co_await census_.take(&map_, &counter_, &*space_, options);
    if (counted) size_log();
    co_return counted;
}

VolumeView Volume::view() {
    ENSURE(space_.has_value());
    return VolumeView({.volume = *this,
                       .reactor = reactor_,
                       .log = log_,
                       .index = index_,
                       .map = map_,
                       .names = names_,
                       .space = *space_});
}

Task<Result<std::uint64_t>> Volume::count_blocks(Fid fid, core::WaitOptions wait) {
    const BlockRange all{.first = 0, .count = kObjectBlocksMax};
    const BlockCounter::Options options{.extents_a_turn = extents_a_turn(), .wait = wait};
    const auto counted = co_await counter_.count(fid, all, options);
    if (!counted) co_return std::unexpected(counted.error());
    co_return counted->blocks;
}

Task<Result<std::uint64_t>> Volume::count_owned(Fid fid, core::WaitOptions wait) {
    const auto object = map_.find(fid);
    if (!object) co_return std::unexpected(object.error());
    const bool is_released = object->has_value() && (*object)->is_released;
    if (is_released) co_return (*object)->released_blocks;
    co_return co_await count_blocks(fid, wait);
}

Task<Result<PoolShares>> Volume::count_owners() {
    VolumeCensus census;
    const auto counted = co_await census.count_owners(&map_, &counter_, extents_a_turn());
    if (!counted) co_return std::unexpected(counted.error());
    co_return census.owners();
}

void Volume::fail(const Error& error) {
    if (!serving_) return;
    serving_ = false;
    failure_ = error;
    log_.refuse(failure_);
    swept_.wake_all();
    blocks_used_.wake_all();
    checkpoint_made_.wake_all();
    core::emit(events_, core::Level::kError, "store.volume_failed",
               {{"device", device_.name()}, {"reason", std::string_view(error.context)}});
}

bool Volume::is_uncertain(Fid fid) {
    return !serving() && uncertain_.contains(fid, log_.durable_seq());
}

// -- segments --

Result<std::uint32_t> Volume::take_segment(SegmentNeed need) {
    if (!space_) return no_space("segments were asked for before they were counted");
    settle();
    const std::uint32_t kept = need == SegmentNeed::kToGoOn ? 0 : kLastSegments;
    if (space_->empty_segments() <= kept) return no_space("an empty segment for the log");
    const std::optional<std::uint32_t> segment = space_->allocate_segment();
    if (!segment) return no_space("an empty segment for the log");
    return *segment;
}

void Volume::give_back_segment(std::uint32_t segment) {
    space_->release_segment(segment);
}

// The log may grow to twice the size of the records that describe all objects.
void Volume::size_log() {
    const std::uint64_t segment_bytes = std::uint64_t{options_.segment_blocks} * 4096;
    const std::uint64_t live = index_.figures().size_bytes + index_.changed_bytes();
    const std::uint32_t least =
        log_segments(Log::segments_on(device_.geometry(), options_.segment_blocks)) +
        kLogReserveSegments;
    const std::uint64_t wanted = std::max<std::uint64_t>(least, 2 * live / segment_bytes + 2);
    const auto count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, Log::kSegmentsMax));
    space_->set_log_claim(count);
    log_.set_segments_max(count);
    log_.set_live_bytes(live);
}

// A full index accepts few changes at a time.
std::uint32_t Volume::extents_a_turn() const {
    const std::uint32_t wanted = options_.sweep.extents_a_turn;
    return index_failure_ ? std::min(wanted, kExtentsWithoutReserve) : wanted;
}

// -- changes --

// Whether there is memory for these records and for all that are reserved. If nothing has changed
// the answer is yes, because no checkpoint would make room.
bool Volume::has_memory(std::uint64_t more_bytes) const {
    const std::uint64_t changed = index_.changed_bytes();
    const std::uint64_t coming = kOverlayReserve * (log_.reserved_bytes() + more_bytes);
    return changed == 0 || changed + coming <= options_.overlay_bytes;
}

// How many changes of the index records of so many bytes make, at most. A removal has the fewest
// bytes for each.
std::uint64_t Volume::index_changes(std::uint32_t bytes, Purpose purpose) {
    const std::uint64_t of_records = kChangesOfRemoval * (bytes / kRemoveRecordBytes + 1);
    return of_records + (purpose == Purpose::kCutting ? kExtentsWithoutReserve : 0);
}

// Whether a checkpoint stays small enough for an index without a reserve; changes whose reservation
// was granted count as well. While checkpoints fail the answer is yes: waiting for one would only
// keep deletes out of the log.
bool Volume::index_takes(std::uint64_t changes) const {
    if (!index_failure_ || checkpoint_fails_) return true;
    const std::uint64_t waiting = index_.change_count() + let_in_changes_;
    return waiting == 0 || waiting + changes <= kChangesWaitingMax;
}

Task<Result<Reservation>> Volume::reserve(std::uint32_t bytes, core::WaitOptions wait,
                                          Purpose purpose) {
    const std::uint64_t changes = index_changes(bytes, purpose);
    for (;;) {
        if (purpose == Purpose::kAdding && index_failure_) {
            co_return std::unexpected(*index_failure_);
        }
        while (serving() && (!has_memory(bytes) || !index_takes(changes))) {
            if (checkpoint_fails_) co_return std::unexpected(*index_failure_);
            checkpoint_wanted_.wake_all();
            const auto made = co_await checkpoint_made_.wait(wait);
            if (!made) co_return std::unexpected(made.error());
        }
        if (!serving()) co_return std::unexpected(failure());
        auto room = co_await log_.reserve(bytes, wait, purpose);
        note_log_room();
        if (!room) co_return std::move(room);
        // Other changes may have taken the memory while this one waited for the log.
        if (!has_memory(0) || !index_takes(changes)) continue;
        if (index_failure_) let_in_changes_ += changes;
        co_return std::move(room);
    }
}

Result<DiskRange> Volume::allocate(std::uint32_t blocks, Purpose purpose) {
    std::optional<DiskRange> range = space_->allocate(blocks, purpose);
    if (!range) {
        settle();
        range = space_->allocate(blocks, purpose);
    }
    if (!range) return no_space("free blocks");
    zeros_.follow(*range, space_->current_segment());
    return *range;
}

void Volume::give_back(DiskRange range) {
    space_->give_back(range);
    blocks_used_.wake_all();
}

Task<Result<bool>> Volume::wait_for_blocks(core::WaitOptions wait) {
    if (space_->promised_blocks() == 0 && space_->use().waiting_blocks == 0) co_return false;
    if (space_->has_unsettled()) co_return true;
    const Instant later = after(reactor_.now(), kReadWait);
    const core::WaitOptions soon{.deadline = std::min(wait.deadline, later), .cancel = wait.cancel};
    const auto woken = co_await blocks_used_.wait(soon);
    const bool may_go_on =
        woken || (woken.error().code == Errc::kTimedOut && later < wait.deadline);
    if (!may_go_on) co_return std::unexpected(woken.error());
    co_return true;
}

Task<Result<void>> Volume::settle_space(core::WaitOptions wait) {
    // Wait until the sweep has freed something, or has no space itself.
    const auto before = sweep_news_;
    while (has_to_sweep_ && serving() && sweep_news_ == before) {
        const auto swept = co_await swept_.wait(wait);
        if (!swept) co_return swept;
    }
    settle();
    if (space_->has_unsettled()) {
        const auto settled = co_await log_.settle(space_->newest_waiting(), wait);
        if (!settled) co_return settled;
        settle();
    }
    space_->end_resting_reads();
    settle();
    if (!space_->is_holding()) co_return Result<void>{};
    zeros_.give_way();
    co_return co_await released_.wait(wait);
}

Task<Result<std::uint64_t>> Volume::punch(Change* change, Fid fid, BlockRange range,
                                          core::WaitOptions wait) {
    for (;;) {
        const BlockCounter::Options options{.extents_a_turn = extents_a_turn(), .wait = wait};
        const auto counted = co_await counter_.count(fid, range, options);
        if (!counted) co_return std::unexpected(counted.error());
        if (counted->cleared > kClearedMax) {
            // The sweep first frees the many small ranges that writes have left. When it has
            // nothing left to free, it wakes no waiter; that may have happened while the ranges
            // were counted.
            if (!serving()) co_return std::unexpected(failure());
            if (!has_to_sweep_) continue;
            const auto swept = co_await swept_.wait(wait);
            if (!swept) co_return std::unexpected(swept.error());
            continue;
        }
        if (counted->turns == 1 && counted->cleared == 0) {
            change->records.punch(fid, range.first, range.count);
        } else {
            change->records.clear_range(fid, range.first, range.count);
            change->cleared_blocks_ += counted->blocks;
        }
        co_return counted->blocks;
    }
}

Result<void> Volume::begin(Change& change, Reservation reservation, Durability durability,
                           Data data) {
    const auto cleared_blocks = std::exchange(change.cleared_blocks_, 0);
    const ReleasedRules::Grant grant = std::exchange(change.grant_, {});
    if (!serving()) return std::unexpected(failure());
    const auto allowed = rules_.check(change.records.bytes(), grant);
    if (!allowed) return allowed;
    uncertain_.note_durable(log_.durable_seq());
    RecordReader reader(change.records.bytes());
    const std::size_t uncertain_before = uncertain_.count();
    RecordEffects& effects = change.effects_;
    effects.reset();
    effects.net_blocks = -static_cast<std::int64_t>(cleared_blocks);
    std::uint32_t count = 0;
    for (;;) {
        const auto record = reader.next();
        ENSURE(record.has_value());
        if (!record->has_value()) break;
        uncertain_.note(**record);
        const Result<void> applied = applier_.apply(**record, effects);
        if (!applied) {
            // The map may have half of the change, and the log will have none of it.
            if (count > 0 || !effects.freed.empty()) {
                fail(applied.error());
            } else {
                uncertain_.forget(uncertain_before);
            }
            return applied;
        }
        ++count;
    }
    if (effects.clears) will_sweep();
    change.durability_ = durability;
    change.commit_.emplace();
    log_.begin(*change.commit_, std::move(reservation), change.records.bytes(), count, durability,
               data);
    const std::uint64_t seq = change.commit_->seq();
    uncertain_.begun(uncertain_before, seq);
    if (!effects.names.empty()) {
        ENSURE(durability == Durability::kDurable);
        names_.begun(seq);
    }
    for (const DiskRange range : effects.freed) space_->release(range, seq);
    effects.freed.clear();
    settle();
    blocks_used_.wake_all();
    if (checkpoint_due()) checkpoint_wanted_.wake_all();
    return {};
}

Task<Result<Receipt>> Volume::finish(Change* change) {
    const Receipt receipt = log_.receipt_of(*change->commit_);
    if (change->durability_ != Durability::kDurable) co_return receipt;
    const auto durable = co_await log_.durable(*change->commit_);
    if (!durable && !change->effects_.names.empty()) names_.give_up(receipt.seq);
    if (!durable) co_return std::unexpected(durable.error());
    if (change->effects_.names.empty()) co_return receipt;
    const auto told = co_await names_.tell(&change->effects_.names, receipt.seq);
    // The name sink does not have the names, though the change is durable: the next start tells it.
    if (!told) fail(told.error());
    if (!told) co_return std::unexpected(told.error());
    co_return receipt;
}

// The name sink keeps the names before the index holds the change: a replay does not show it again.
Task<Result<void>> Volume::make_durable() {
    const std::uint64_t begun = log_.begun_seq();
    const core::WaitOptions wait{};
    const auto synced = co_await log_.sync(wait);
    if (!synced) co_return synced;
    co_return co_await names_.keep(begun, &stop_);
}

}  // namespace fopd::store
