#include "store/volume.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::store {

namespace {

// Of a range that is to be cleared: they are joined in one turn.
constexpr std::uint32_t kClearedMax = 256;
// The map may grow by this much for each byte of a record.
constexpr std::uint64_t kOverlayReserve = 4;
// While the index has no reserve: how many changes may wait for a checkpoint,
constexpr std::uint64_t kChangesWaitingMax = 256;
// and how many extents one change frees.
constexpr std::uint32_t kExtentsWithoutReserve = 64;
constexpr Duration kRetryAfter = 1s;
// Until blocks that a read may still look at are asked for again: no read wakes anybody at its end.
constexpr Duration kReadWait = 5ms;
// Data leaves the log at least so many empty segments, beside those that the log begins with.
constexpr std::uint32_t kLogReserveSegments = 2;
// A log that only wants more room leaves so many empty segments; one that cannot free or clean
// anything without another segment takes those as well.
constexpr std::uint32_t kLastSegments = 1;
// This part of a segment is left for blocks that truncates and punches write anew.
constexpr std::uint32_t kFreeingReservePart = 16;
// What cleaning looks at, and commits again, in one turn; commits wait meanwhile.
constexpr std::uint32_t kCleanedInATurn = 128;
constexpr std::uint32_t kKeptBytesMax = 12'000;  // In three blocks.
// As large as a record can be.
constexpr std::size_t kRecordBytesMax =
    std::max(kPutRecordBytesMax, extent_record_bytes(kExtentBlocksMax));
static_assert(kRecordBytesMax <= kKeptBytesMax);

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

constexpr Error kBadRecord{.code = Errc::kCorrupt, .context = "a record of the log"};

std::unexpected<Error> no_space(const char* what) {
    return std::unexpected(Error{.code = Errc::kNoSpace, .context = what});
}

}  // namespace

// Tells the allocator what the index says, and counts whose it is. The extents come object by
// object.
class Volume::SpaceMaker final : public MapVisitor {
public:
    explicit SpaceMaker(Volume& volume) : volume_(volume) {}

    Result<void> extent(const StoredExtent& extent) override {
        if (counted_.empty() || counted_.back().fid != extent.fid) {
            counted_.push_back({.fid = extent.fid});
        }
        counted_.back().blocks += extent.count;
        const Result<void> taken =
            volume_.space_->take({.block = extent.block, .count = extent.count});
        // Nothing is given out on a disk that is only read: what is wrong with it can be shown.
        if (volume_.mode_ == Mode::kReadOnly) return {};
        return taken;
    }
    // Looks into the map itself, which a visit must not.
    Task<Result<void>> between_turns() override {
        for (const Counted& each : counted_) {
            const Result<void> added = add(each);
            if (!added) co_return added;
        }
        counted_.clear();
        co_return Result<void>{};
    }

private:
    struct Counted {
        Fid fid{};
        std::uint64_t blocks = 0;
    };

    Result<void> add(const Counted& counted) {
        const auto object = volume_.map_.find(counted.fid);
        if (!object) return std::unexpected(object.error());
        if (object->has_value()) {
            volume_.share_of((*object)->owner).blocks += counted.blocks;
            return {};
        }
        const auto upload = volume_.map_.find_upload(counted.fid);
        if (!upload) return std::unexpected(upload.error());
        // What was removed is nobody's any more.
        if (!upload->has_value()) return {};
        volume_.share_of((*upload)->object.owner).blocks += counted.blocks;
        return {};
    }

    Volume& volume_;
    std::vector<Counted> counted_;  // In this turn.
};

// Counts who has how many objects, and uploads.
class Volume::ObjectCounter final : public MapVisitor {
public:
    explicit ObjectCounter(Volume& volume) : volume_(volume) {}
    Result<void> object(Fid /*fid*/, const Object& object) override {
        ++volume_.share_of(object.owner).objects;
        return {};
    }
    Result<void> upload(Fid /*fid*/, const Upload& upload) override {
        ++volume_.share_of(upload.object.owner).objects;
        return {};
    }

private:
    Volume& volume_;
};

// Counts whose replies are stored; those of a client come one behind the other.
class Volume::ReplyCounter final : public MapVisitor {
public:
    explicit ReplyCounter(Volume& volume) : counted_(volume.replies_at_open_) {}
    Result<void> reply(const ReplyRecord& record) override {
        if (counted_.empty() || counted_.back().client != record.key.client) {
            counted_.push_back({.client = record.key.client});
        }
        ++counted_.back().count;
        return {};
    }

private:
    std::vector<ClientReplies>& counted_;
};

// Takes from those who have them the blocks that count no more.
class Volume::ClearedCounter final : public MapVisitor {
public:
    explicit ClearedCounter(Volume& volume) : volume_(volume) {}
    Result<void> cleared(const Cleared& cleared) override {
        seen_.push_back(cleared);
        return {};
    }
    Task<Result<void>> between_turns() override {
        for (const Cleared& each : seen_) {
            const auto object = volume_.map_.find(each.fid);
            if (!object) co_return std::unexpected(object.error());
            if (!object->has_value()) continue;
            OwnerShare& share = volume_.share_of((*object)->owner);
            const BlockRange range{.first = each.first, .count = each.end - each.first};
            const auto counted = co_await volume_.count_range(each.fid, range, Which::kAll, {});
            if (!counted) co_return std::unexpected(counted.error());
            share.blocks -= counted->blocks;
        }
        seen_.clear();
        co_return Result<void>{};
    }

private:
    Volume& volume_;
    std::vector<Cleared> seen_;  // In this turn.
};

Volume::Volume(const VolumeParts& parts, const VolumeOptions& options)
    : reactor_(parts.reactor),
      device_(parts.device),
      events_(parts.events),
      options_(options),
      index_(parts.index),
      map_(parts.reactor, index_),
      log_(parts.reactor, parts.device, *this, log_options(options)),
      names_({.reactor = parts.reactor, .index = index_, .map = map_, .sink = parts.names},
             options.disk_id, options.slot),
      released_(parts.reactor),
      zeros_({.reactor = parts.reactor,
              .device = parts.device,
              .events = parts.events,
              .released = released_},
             options.zeros_ahead_bytes),
      discards_({.reactor = parts.reactor,
                 .device = parts.device,
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
    auto memory = AlignedMemory::allocate(kExtentBlocksMax * devices::kBlockBytes);
    if (!memory) co_return std::unexpected(memory.error());
    check_memory_ = std::move(*memory);
    mode_ = mode;
    const auto known = co_await names_.ask();
    if (!known) {
        failure_ = known.error();
        co_return std::unexpected(known.error());
    }
    const ReplayOptions options{.applied_seq = index_.applied(),
                                .flushed_seq = *known,
                                .mode = mode == Mode::kServe ? ReplayOptions::Mode::kServe
                                                             : ReplayOptions::Mode::kReadOnly};
    const auto replayed = co_await log_.open(this, options);
    check_memory_ = AlignedMemory();
    if (!replayed) {
        failure_ = replayed.error();
        co_return std::unexpected(replayed.error());
    }
    replayed_ = *replayed;
    const auto counted = co_await count_space();
    if (!counted) {
        failure_ = counted.error();
        co_return counted;
    }
    if (mode == Mode::kReadOnly) {
        failure_ = {.code = Errc::kDenied, .context = "opened to be read only"};
        co_return Result<void>{};
    }
    // What was replayed may be gone from the log's reach once the log goes on.
    const auto kept = co_await checkpoint();
    if (!kept) {
        failure_ = kept.error();
        co_return kept;
    }
    serving_ = true;
    note_checkpoint(kept);
    reactor_.spawn(duties_, keep_index_up());
    reactor_.spawn(duties_, keep_log_short());
    reactor_.spawn(duties_, sweep());
    reactor_.spawn(duties_, zeros_.run(&*space_, &stop_));
    reactor_.spawn(duties_, discards_.run(&*space_, &stop_));
    co_return Result<void>{};
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

// Which blocks are in use: the log's, and those the extents name.
Task<Result<void>> Volume::count_space() {
    space_.emplace(Allocator::Options{
        .disk_blocks = device_.geometry().size_bytes / devices::kBlockBytes,
        .first_block = Log::kSegmentsBlock,
        .segment_blocks = options_.segment_blocks,
        .freeing_reserve_blocks = options_.segment_blocks / kFreeingReservePart,
    });
    for (const std::uint32_t segment : log_.segments()) {
        const Result<void> taken = space_->take_segment(segment);
        if (!taken) co_return taken;
    }
    SpaceMaker maker(*this);
    const auto taken = co_await map_.for_each(KeyKind::kExtent, &maker);
    if (!taken) co_return taken;
    ClearedCounter cleared(*this);
    const auto told = co_await map_.for_each(KeyKind::kCleared, &cleared);
    if (!told) co_return told;
    const auto counted = co_await count_owners();
    if (counted) size_log();
    co_return counted;
}

Task<Result<void>> Volume::count_owners() {
    ObjectCounter counter(*this);
    const auto objects = co_await map_.for_each(KeyKind::kObject, &counter);
    if (!objects) co_return objects;
    const auto uploads = co_await map_.for_each(KeyKind::kUpload, &counter);
    if (!uploads) co_return uploads;
    ReplyCounter replies(*this);
    co_return co_await map_.for_each(KeyKind::kReply, &replies);
}

OwnerShare& Volume::share_of(std::string_view owner) {
    const auto found = owners_at_open_.find(owner);
    if (found != owners_at_open_.end()) return found->second;
    return owners_at_open_[std::string(owner)];
}

Task<Result<std::uint64_t>> Volume::count_blocks(Fid fid, core::WaitOptions wait) {
    const BlockRange all{.first = 0, .count = kObjectBlocksMax};
    const auto counted = co_await count_range(fid, all, Which::kLiving, wait);
    if (!counted) co_return std::unexpected(counted.error());
    co_return counted->blocks;
}

Task<Result<Volume::Counted>> Volume::count_range(Fid fid, BlockRange range, Which which,
                                                  core::WaitOptions wait) {
    const std::uint32_t steps_max = extents_a_turn();
    Counted all;
    for (BlockRange rest = range;;) {
        const auto counted = which == Which::kLiving ? map_.count(fid, rest, steps_max)
                                                     : map_.count_all(fid, rest, steps_max);
        if (!counted) co_return std::unexpected(counted.error());
        all.blocks += counted->blocks;
        if (counted->met_cleared) ++all.cleared;
        ++all.turns;
        if (counted->finished) co_return all;
        rest = {.first = counted->next, .count = range.end() - counted->next};
        const auto wanted = check_wanted(wait);
        if (!wanted) co_return std::unexpected(wanted.error());
        co_await reactor_.yield();
    }
}

Result<void> Volume::check_wanted(core::WaitOptions wait) const {
    const bool is_wanted = wait.cancel == nullptr || !wait.cancel->cancelled();
    if (!is_wanted) return std::unexpected(Error{.code = Errc::kCancelled});
    if (wait.deadline > reactor_.now()) return {};
    return std::unexpected(Error{.code = Errc::kTimedOut, .context = "an object of many extents"});
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

void Volume::note_changed(const Record& record) {
    // Never durable, unless it is begun.
    Changed changed{.fid = record.fid, .seq = UINT64_MAX};
    if (record.kind == RecordKind::kPut || record.kind == RecordKind::kCommit) {
        const auto kind = static_cast<KeyKind>(record.key.front());
        const auto fid = read_fid_key(kind, record.key);
        const bool of_object = kind == KeyKind::kObject || kind == KeyKind::kUpload;
        if (!of_object || !fid) return;
        changed.fid = *fid;
    }
    if (record.kind == RecordKind::kForget) return;
    const bool is_known = !changed_.empty() && changed_.back().seq == UINT64_MAX &&
                          changed_.back().fid == changed.fid;
    if (!is_known) changed_.push_back(changed);
}

void Volume::note_durable() {
    const std::uint64_t durable = log_.durable_seq();
    while (!changed_.empty() && changed_.front().seq <= durable) changed_.pop_front();
}

bool Volume::is_uncertain(Fid fid) {
    if (serving()) return false;
    for (const Changed& each : changed_) {
        std::uint64_t& last = uncertain_[each.fid];
        last = std::max(last, each.seq);
    }
    changed_.clear();
    const auto found = uncertain_.find(fid);
    return found != uncertain_.end() && found->second > log_.durable_seq();
}

// -- segments --

Result<std::uint32_t> Volume::take_segment(SegmentNeed need) {
    if (!space_) return no_space("segments before they are counted");
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

// The log is to hold twice what describes everything there is.
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

// -- what a record does --

Result<void> Volume::apply(const Record& record, Effects effects) {
    switch (record.kind) {
        case RecordKind::kPut:
        case RecordKind::kCommit:
        case RecordKind::kForget: return apply_value(record, effects.names);
        case RecordKind::kExtent: return apply_extent(record, effects);
        case RecordKind::kPunch: return apply_punch(record, effects);
        case RecordKind::kClear: {
            const BlockRange range{.first = record.first, .count = record.count};
            const Result<void> cleared = map_.clear(record.fid, range);
            if (!cleared) return cleared;
            will_sweep();
            return {};
        }
        case RecordKind::kRemove: {
            const Result<void> noted = names_.note(record.fid, nullptr, effects.names);
            if (!noted) return noted;
            map_.remove(record.fid);
            will_sweep();
            return {};
        }
    }
    return std::unexpected(kBadRecord);
}

// Requires: few extents are there, and none in a range that was cleared; unless a log is replayed.
Result<void> Volume::apply_punch(const Record& record, Effects effects) {
    const BlockRange range{.first = record.first, .count = record.count};
    const std::size_t freed_before = effects.freed.size();
    for (BlockRange rest = range;;) {
        const auto punched =
            map_.punch(record.fid, rest, options_.sweep.extents_a_turn, effects.freed);
        if (!punched) return std::unexpected(punched.error());
        if (punched->finished) break;
        rest = {.first = punched->next, .count = range.end() - punched->next};
    }
    // It may be a piece of what was cleared, that went in an earlier life.
    const auto forgotten = map_.forget_cleared(record.fid, range);
    if (!forgotten) return forgotten;
    for (std::size_t i = freed_before; i < effects.freed.size(); ++i) {
        effects.net_blocks -= effects.freed[i].count;
    }
    return {};
}

// A full index takes few changes at a time.
std::uint32_t Volume::extents_a_turn() const {
    const std::uint32_t wanted = options_.sweep.extents_a_turn;
    return index_failure_ ? std::min(wanted, kExtentsWithoutReserve) : wanted;
}

void Volume::will_sweep() {
    has_to_sweep_ = true;
    sweep_wanted_.wake_all();
}

Result<void> Volume::apply_extent(const Record& record, Effects effects) {
    ExtentRuns runs(record);
    while (const std::optional<Extent> run = runs.next()) {
        const auto more = map_.insert(record.fid, *run, effects.freed);
        if (!more) return std::unexpected(more.error());
        effects.net_blocks += static_cast<std::int64_t>(*more);
        // Not while a log is replayed: which blocks are in use is found out later.
        if (space_) space_->take_up({.block = run->block, .count = run->count()});
    }
    return {};
}

Result<void> Volume::apply_value(const Record& record, NameChanges& names) {
    switch (static_cast<KeyKind>(record.key.front())) {
        case KeyKind::kReply: return apply_reply(record);
        case KeyKind::kUpload: {
            const auto fid = read_fid_key(KeyKind::kUpload, record.key);
            if (!fid) return std::unexpected(fid.error());
            const auto upload = read_upload(record.value);
            if (!upload) return std::unexpected(upload.error());
            if (record.kind != RecordKind::kPut) return std::unexpected(kBadRecord);
            map_.put_upload(*fid, *upload);
            return {};
        }
        case KeyKind::kObject: return apply_object(record, names);
        case KeyKind::kExtent:
        case KeyKind::kNames:
        case KeyKind::kCleared: break;
    }
    return std::unexpected(kBadRecord);
}

Result<void> Volume::apply_object(const Record& record, NameChanges& names) {
    const auto fid = read_fid_key(KeyKind::kObject, record.key);
    if (!fid) return std::unexpected(fid.error());
    const auto object = read_object(record.value);
    if (!object) return std::unexpected(object.error());
    if (record.kind == RecordKind::kForget) return std::unexpected(kBadRecord);
    const Result<void> noted = names_.note(*fid, &*object, names);
    if (!noted) return noted;
    if (record.kind == RecordKind::kCommit) {
        map_.commit_upload(*fid, *object);
    } else {
        map_.put(*fid, *object);
    }
    return {};
}

Result<void> Volume::apply_reply(const Record& record) {
    if (record.kind == RecordKind::kForget) {
        const auto key = read_reply_key(record.key);
        if (!key) return std::unexpected(key.error());
        map_.forget_reply(*key);
        return {};
    }
    const auto reply = read_reply(record.key, record.value);
    if (!reply) return std::unexpected(reply.error());
    if (record.kind != RecordKind::kPut) return std::unexpected(kBadRecord);
    return map_.put_reply(*reply);
}

// -- replay --

Task<Result<bool>> Volume::data_ok(LogEntry entry) {
    RecordReader reader(entry.payload);
    for (;;) {
        const auto record = reader.next();
        if (!record) co_return std::unexpected(record.error());
        if (!record->has_value()) co_return true;
        if ((*record)->kind != RecordKind::kExtent) continue;
        ExtentRuns runs(**record);
        while (const std::optional<Extent> run = runs.next()) {
            const auto match = co_await blocks_match(*run);
            if (!match || !*match) co_return match;
        }
    }
}

Task<Result<bool>> Volume::blocks_match(Extent extent) {
    const std::uint64_t disk_blocks = device_.geometry().size_bytes / devices::kBlockBytes;
    if (extent.block >= disk_blocks || extent.count() > disk_blocks - extent.block) co_return false;
    core::Buffer into = check_memory_.buffer();
    into.size_bytes = extent.count() * devices::kBlockBytes;
    // Without a deadline: a start waits for its disks.
    const core::WaitOptions wait{};
    const auto read = co_await device_.read(into, extent.block * devices::kBlockBytes, wait);
    if (!read) co_return std::unexpected(read.error());
    for (std::uint32_t i = 0; i < extent.count(); ++i) {
        const auto block = into.span().subspan(i * devices::kBlockBytes, devices::kBlockBytes);
        if (core::crc32c(block) != extent.checksums[i]) co_return false;
    }
    co_return true;
}

Task<Result<void>> Volume::replay(LogEntry entry) {
    std::vector<Place> freed;
    NameChanges names;
    std::int64_t net_blocks = 0;
    RecordReader reader(entry.payload);
    for (;;) {
        const auto record = reader.next();
        if (!record) co_return std::unexpected(record.error());
        if (!record->has_value()) break;
        const Result<void> applied =
            apply(**record, {.freed = freed, .names = names, .net_blocks = net_blocks});
        if (!applied) co_return applied;
        freed.clear();
    }
    if (!names.empty()) {
        // A log that does not go on is read as it is, also if its disk flushes no more.
        Result<void> flushed{};
        if (mode_ == Mode::kServe) flushed = co_await flush_replayed();
        if (!flushed) co_return flushed;
        const auto told = co_await names_.tell_replayed(&names, entry.seq);
        if (!told) co_return told;
    }
    const bool is_much = index_.changed_bytes() * 2 >= options_.overlay_bytes;
    if (!is_much && !index_.wants_checkpoint()) co_return Result<void>{};
    const auto flushed = co_await flush_replayed();
    if (!flushed) co_return flushed;
    const auto kept = co_await names_.keep(entry.seq, &stop_);
    if (!kept) co_return kept;
    co_return co_await index_.checkpoint(entry.seq);
}

// What a log without a marked end holds may still be on its way to the medium, and others are about
// to rely on it.
Task<Result<void>> Volume::flush_replayed() {
    if (replay_flushed_) co_return Result<void>{};
    const auto flushed = co_await device_.flush();
    if (flushed) replay_flushed_ = true;
    co_return flushed;
}

// -- changes --

// Whether there is memory for that, too, when all comes that is reserved. Where nothing has changed
// no checkpoint would make room.
bool Volume::has_memory(std::uint64_t more_bytes) const {
    const std::uint64_t changed = index_.changed_bytes();
    const std::uint64_t coming = kOverlayReserve * (log_.reserved_bytes() + more_bytes);
    return changed == 0 || changed + coming <= options_.overlay_bytes;
}

// How many changes of the index one of the log may be.
std::uint64_t Volume::index_changes(std::uint32_t bytes, Purpose purpose) {
    return bytes / kForgetRecordBytes + (purpose == Purpose::kCutting ? kExtentsWithoutReserve : 0);
}

// Without a reserve a checkpoint must be small. Some of those that were let in have not begun yet.
// While checkpoints fail, waiting for one would only keep deletes from the log.
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
        // Others may have had the memory while this one waited for the log.
        if (!has_memory(0) || !index_takes(changes)) continue;
        if (index_failure_) let_in_changes_ += changes;
        co_return std::move(room);
    }
}

Result<Place> Volume::allocate(std::uint32_t blocks, Purpose purpose) {
    std::optional<Place> place = space_->allocate(blocks, purpose);
    if (!place) {
        settle();
        place = space_->allocate(blocks, purpose);
    }
    if (!place) return no_space("free blocks");
    zeros_.follow(*place, space_->current_segment());
    return *place;
}

void Volume::give_back(Place place) {
    space_->give_back(place);
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
    // Until something was freed, or the sweep itself has no space.
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
    if (!space_->is_holding()) co_return Result<void>{};
    co_return co_await released_.wait(wait);
}

Task<Result<std::uint64_t>> Volume::punch(Change* change, Fid fid, BlockRange range,
                                          core::WaitOptions wait) {
    for (;;) {
        const auto counted = co_await count_range(fid, range, Which::kLiving, wait);
        if (!counted) co_return std::unexpected(counted.error());
        if (counted->cleared > kClearedMax) {
            // What writes have left of it goes first.
            if (!serving()) co_return std::unexpected(failure());
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
    if (!serving()) return std::unexpected(failure());
    note_durable();
    RecordReader reader(change.records.bytes());
    const std::size_t changed_before = changed_.size();
    change.names_.clear();
    change.net_blocks_ = -static_cast<std::int64_t>(cleared_blocks);
    std::uint32_t count = 0;
    for (;;) {
        const auto record = reader.next();
        ENSURE(record.has_value());
        if (!record->has_value()) break;
        note_changed(**record);
        const Result<void> applied = apply(
            **record,
            {.freed = change.freed_, .names = change.names_, .net_blocks = change.net_blocks_});
        if (!applied) {
            // Half a change: what the map says is not what the log says.
            if (count > 0 || !change.freed_.empty()) fail(applied.error());
            return applied;
        }
        ++count;
    }
    change.durability_ = durability;
    change.commit_.emplace();
    log_.begin(*change.commit_, std::move(reservation), change.records.bytes(), count, durability,
               data);
    for (std::size_t i = changed_before; i < changed_.size(); ++i) {
        changed_[i].seq = change.commit_->seq();
    }
    if (!change.names_.empty()) {
        ENSURE(durability == Durability::kDurable);
        names_.begun(change.commit_->seq());
    }
    for (const Place place : change.freed_) space_->release(place, change.commit_->seq());
    change.freed_.clear();
    settle();
    blocks_used_.wake_all();
    if (checkpoint_due()) checkpoint_wanted_.wake_all();
    return {};
}

Task<Result<Receipt>> Volume::finish(Change* change) {
    const Receipt receipt = log_.receipt_of(*change->commit_);
    if (change->durability_ != Durability::kDurable) co_return receipt;
    const auto durable = co_await log_.durable(*change->commit_);
    if (!durable && !change->names_.empty()) names_.give_up(receipt.seq);
    if (!durable) co_return std::unexpected(durable.error());
    if (change->names_.empty()) co_return receipt;
    const auto told = co_await names_.tell(&change->names_, receipt.seq);
    // Names that are not known, and never were refused: the next start tells them.
    if (!told) fail(told.error());
    if (!told) co_return std::unexpected(told.error());
    co_return receipt;
}

// With the names: once the index holds a change, a replay shows it to nobody any more.
Task<Result<void>> Volume::make_durable() {
    const std::uint64_t begun = log_.begun_seq();
    const core::WaitOptions wait{};
    const auto synced = co_await log_.sync(wait);
    if (!synced) co_return synced;
    co_return co_await names_.keep(begun, &stop_);
}

// -- the index follows --

bool Volume::checkpoint_due() const {
    const SpaceUse use = space_->use();
    return index_.changed_bytes() * 2 > options_.overlay_bytes || index_.wants_checkpoint() ||
           use.waiting_blocks * 10 > use.free_blocks + use.waiting_blocks;
}

// Everything that was begun by now, once it is durable.
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

// Tells once that the index is full, and once that it is not any more: a full file system stays
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
        // A full index is asked again whether it has room.
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
    while (!stop_.cancelled() && serving()) {
        const core::WaitOptions wait{.cancel = &stop_};
        const auto wanted = co_await log_.wait_cleaning_wanted(wait);
        if (!wanted) co_return;
        const auto cleaned = co_await log_.clean(this);
        note_log_room();
        // Without room to clean it is full, and that is not tried again before something changes.
        if (cleaned || cleaned.error().code == Errc::kNoSpace) continue;
        if (cleaned.error().code == Errc::kBusy) {
            // The index must have what the segment holds.
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

// Once when it is full, once when it is not any more.
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

// In short pieces, each of which is decided about in the turn in which it is begun.
Task<Result<void>> Volume::keep(LogEntry entry) {
    RecordReader reader(entry.payload);
    const core::WaitOptions wait{.cancel = &stop_};
    const auto bytes = std::min(kKeptBytesMax, static_cast<std::uint32_t>(entry.payload.size()));
    for (bool has_more = bytes > 0; has_more;) {
        auto reserved = co_await log_.reserve(bytes, wait, Purpose::kCleaning);
        if (!reserved) co_return std::unexpected(reserved.error());
        kept_.clear();
        const auto sorted = keep_what_lives(reader);
        if (!sorted) co_return std::unexpected(sorted.error());
        has_more = *sorted;
        if (kept_.count() > 0) {
            Commit commit;
            log_.begin(commit, std::move(*reserved), kept_.bytes(), kept_.count(),
                       Durability::kBuffered, Data::kNone);
        }
        if (has_more) co_await reactor_.yield();
    }
    co_return Result<void>{};
}

// Whether there are more records than it has looked at.
Result<bool> Volume::keep_what_lives(RecordReader& reader) {
    for (std::uint32_t looked_at = 0; looked_at < kCleanedInATurn; ++looked_at) {
        if (kept_.bytes().size() + kRecordBytesMax > kKeptBytesMax) return true;
        const auto record = reader.next();
        if (!record) return std::unexpected(record.error());
        if (!record->has_value()) return false;
        const Result<void> kept = keep_if_alive(**record);
        if (!kept) return std::unexpected(kept.error());
    }
    return true;
}

// A hole, or that something is gone, is of no use any more: what it undid was before it in the log.
Result<void> Volume::keep_if_alive(const Record& record) {
    switch (record.kind) {
        case RecordKind::kPut:
        case RecordKind::kCommit: {
            const auto current = index_.get(record.key);
            if (!current) return std::unexpected(current.error());
            const bool lives = current->has_value() && std::ranges::equal(**current, record.value);
            if (lives) kept_.put(record.key, record.value);
            return {};
        }
        case RecordKind::kExtent: return keep_extent(record);
        case RecordKind::kPunch:
        case RecordKind::kClear:
        case RecordKind::kRemove:
        case RecordKind::kForget: break;
    }
    return {};
}

Result<void> Volume::keep_extent(const Record& record) {
    // What was removed is not described any more; its blocks are free to those who start anew.
    const auto object = map_.find(record.fid);
    if (!object) return std::unexpected(object.error());
    if (!object->has_value()) {
        const auto upload = map_.find_upload(record.fid);
        if (!upload) return std::unexpected(upload.error());
        if (!upload->has_value()) return {};
    }
    // That a block is where the record has it says little: the object may have lost it and been
    // given it again since.
    std::array<std::uint32_t, kExtentBlocksMax> checksums{};
    ExtentBlocks spoken_of;
    ExtentRuns runs(record);
    while (const std::optional<Extent> run = runs.next()) {
        for (std::size_t i = 0; i < run->checksums.size(); ++i) {
            checksums[run->first - record.first + i] = run->checksums[i];
            spoken_of.set(run->first - record.first + i);
        }
    }
    ExtentBlocks live;
    ObjectMap::Extents extents =
        map_.extents(record.fid, {.first = record.first, .count = record.count});
    for (;;) {
        const auto extent = extents.next();
        if (!extent) return std::unexpected(extent.error());
        if (!extent->has_value()) break;
        if ((*extent)->block - record.block != (*extent)->first - record.first) continue;
        for (std::size_t i = 0; i < (*extent)->checksums.size(); ++i) {
            const std::uint64_t distance = (*extent)->first - record.first + i;
            if ((*extent)->checksums[i] == checksums[distance]) live.set(distance);
        }
    }
    // What this record does not speak of is a later one's.
    live &= spoken_of;
    if (live.any()) kept_.rest_of_extent(record, live);
    return {};
}

// -- what was cleared --

Task<void> Volume::sweep() {
    while (!stop_.cancelled() && serving()) {
        if (!has_to_sweep_) {
            const core::WaitOptions wait{.cancel = &stop_};
            const auto woken = co_await sweep_wanted_.wait(wait);
            if (!woken) co_return;
        }
        const auto swept = co_await sweep_some();
        if (!swept || !swept_places_.empty()) ++sweep_news_;
        swept_.wake_all();
        if (!swept) {
            // While the index has no space it takes nothing more of the log, which may then be
            // full.
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

// Frees a piece of it, by a record, so that a log and its map go the same way.
Task<Result<void>> Volume::sweep_some() {
    swept_places_.clear();
    const core::WaitOptions wait{.cancel = &stop_};
    auto reserved = co_await reserve(kPunchRecordBytes, wait, Purpose::kFreeing);
    if (!reserved) co_return std::unexpected(reserved.error());
    const auto swept = map_.sweep(extents_a_turn(), swept_places_);
    if (!swept) co_return std::unexpected(swept.error());
    has_to_sweep_ = swept->has_value();
    if (!has_to_sweep_) co_return Result<void>{};
    const ObjectMap::Swept& piece = **swept;
    if (piece.range.count == 0) co_return Result<void>{};
    RecordWriter record;
    record.punch(piece.fid, piece.range.first, piece.range.count);
    Commit commit;
    log_.begin(commit, std::move(*reserved), record.bytes(), record.count(), Durability::kBuffered,
               Data::kNone);
    for (const Place place : swept_places_) space_->release(place, commit.seq());
    settle();
    co_return Result<void>{};
}

}  // namespace fopd::store
