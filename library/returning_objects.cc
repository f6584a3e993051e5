#include "library/returning_objects.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "library/recall.h"
#include "objects/block_io.h"
#include "objects/disk_use.h"
#include "objects/home_volume.h"
#include "objects/object_change.h"
#include "objects/range_locks.h"
#include "store/aligned_memory.h"
#include "store/bringing_back.h"

namespace fopd::library {

namespace {

using objects::kBlock;

// How long an attempt waits for changes of the object and for room in the log.
constexpr Duration kReturnPatience = 30s;
// How long room is kept for a recall that has waited for it, while its cartridge is loaded.
constexpr Duration kRoomIsKept = 3min;

bool is_zero(std::span<const std::byte> block) {
    return std::ranges::all_of(block, [](std::byte each) { return each == std::byte{0}; });
}

// Whether the object has a recall. A message of the library may come after its end.
Result<void> check_recalled(objects::HomeVolume& home, store::Fid fid) {
    const auto recall = home.volume().map().find_recall(fid);
    if (!recall) return std::unexpected(recall.error());
    if (recall->has_value() && (*recall)->ticket != 0) return {};
    return std::unexpected(Error{.code = Errc::kNotFound, .context = "the recall has ended"});
}

// Whether the recall waits in the line for room on its disk. A repack is behind the requests of
// users, so its recalls take what is left over.
bool has_turns(objects::HomeVolume& home, store::Fid fid) {
    const auto recall = home.volume().map().find_recall(fid);
    return recall && recall->has_value() && (*recall)->ticket != 0 &&
           (*recall)->priority > kRepackPriority;
}

// Called when an attempt has ended without success. While it was in progress, a recall that was not
// needed any more was not ended; now it is.
void tell_ended(objects::Stores& stores, store::Fid fid) {
    const objects::HomeVolume* const home = stores.find(fid.slot());
    if (home != nullptr && home->observer() != nullptr) home->observer()->object_changed(fid);
}

}  // namespace

class ReturningObjects::Attempt {
public:
    Attempt(objects::Stores& stores, RoomMaker& room, objects::HomeVolume& home, store::Fid fid)
        : stores_(stores),
          room_(room),
          home_(home),
          hold_(home),
          ending_(home.ending()),
          fid_(fid),
          change_(home) {
        io_.use(stores.in_background(home));
    }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    ~Attempt() = default;

    Task<Result<Content>> begin();
    Task<Result<void>> write(Part part);
    Task<Result<store::Recall>> end();
    Task<void> abandon();
    void cancel() { cancelled_ = true; }
    store::Fid fid() const { return fid_; }
    store::Slot slot() const { return fid_.slot(); }
    // The expected number of blocks: as many as the object had before its release, if known.
    std::uint64_t needed_blocks() const { return needed_blocks_; }
    void take_space() { has_space_ = true; }
    bool has_space() const { return has_space_; }
    // If it has waited in the line for room, it keeps its place until it has written all.
    void keep_place() const {
        home_.uploads().recall_has_room(fid_, taken_blocks(), stores_.parts().reactor.now());
    }
    // The blocks that it has reserved and not yet written.
    std::uint64_t taken_blocks() const {
        const auto written = static_cast<std::uint64_t>(std::max<std::int64_t>(blocks_, 0));
        return has_space_ ? needed_blocks_ - std::min(needed_blocks_, written) : 0;
    }
    objects::HomeVolume& home() const { return home_; }
    core::WaitOptions wait() const {
        return {.deadline = after(stores_.parts().reactor.now(), kReturnPatience),
                .cancel = &ending_};
    }

private:
    Task<Result<void>> write_blocks(Part part);
    Task<Result<std::uint32_t>> allocate_from(Part part, std::uint32_t from);
    Task<Result<store::DiskRange>> allocate(std::uint32_t blocks);
    Task<Result<void>> commit(Part part, store::BlockRange range);
    Task<Result<void>> lock(objects::RangeLock* lock);
    Task<Result<void>> drop_parts();
    void count_for_owner(objects::DiskUse::Owner* owner, std::uint64_t counted);
    store::Volume& volume() const { return home_.volume(); }

    objects::Stores& stores_;
    RoomMaker& room_;
    objects::HomeVolume& home_;
    const objects::HomeVolume::Hold hold_;
    core::CancelSource& ending_;
    const store::Fid fid_;
    bool cancelled_ = false;
    store::BringingBack attempt_;
    std::int64_t blocks_ = 0;  // The blocks of the parts that were written.
    std::uint64_t needed_blocks_ = 0;
    bool has_space_ = false;
    objects::BlockIo io_;
    objects::ObjectChange change_;
    // For each allocated range of the change, its first block in the part. Blocks of zeros have no
    // range.
    std::vector<std::uint32_t> written_;
    store::AlignedMemory last_block_;
};

Task<Result<void>> ReturningObjects::Attempt::lock(objects::RangeLock* lock) {
    const objects::LockRequest whole{
        .fid = fid_, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive};
    co_return co_await home_.locks().acquire(*lock, whole, wait());
}

Task<Result<ReturningObjects::Content>> ReturningObjects::Attempt::begin() {
    objects::RangeLock held;
    const auto locked = co_await lock(&held);
    if (!locked) co_return std::unexpected(locked.error());
    const auto dropped = co_await drop_parts();
    // kInvalid: the object is not released, which begin_bringing_back() finds, too.
    if (!dropped && dropped.error().code != Errc::kInvalid) {
        co_return std::unexpected(dropped.error());
    }
    auto begun = co_await volume().begin_bringing_back(fid_, wait());
    if (!begun) {
        Error error = begun.error();
        if (error.code == Errc::kInvalid) error.code = Errc::kNotFound;
        co_return std::unexpected(error);
    }
    attempt_ = std::move(*begun);
    const auto object = volume().map().find(fid_);
    if (!object) co_return std::unexpected(object.error());
    if (object->has_value()) needed_blocks_ = (*object)->released_blocks;
    co_return Content{.size_bytes = attempt_.size_bytes(), .version = attempt_.content_version()};
}

Task<Result<void>> ReturningObjects::Attempt::write(Part part) {
    const std::uint64_t whole_bytes = part.from.size_bytes / kBlock * kBlock;
    ENSURE(part.offset % kBlock == 0);
    if (whole_bytes > 0) {
        Part blocks = part;
        blocks.from.size_bytes = whole_bytes;
        blocks.checksums = part.checksums.first(whole_bytes / kBlock);
        const auto written = co_await write_blocks(blocks);
        if (!written) co_return written;
    }
    if (whole_bytes == part.from.size_bytes) co_return Result<void>{};
    if (last_block_.span().empty()) {
        auto memory = store::AlignedMemory::allocate(kBlock);
        if (!memory) co_return std::unexpected(memory.error());
        last_block_ = std::move(*memory);
    }
    std::ranges::fill(last_block_.span(), std::byte{0});
    std::ranges::copy(part.from.span().subspan(whole_bytes), last_block_.span().begin());
    const Part last{.fid = fid_,
                    .offset = part.offset + whole_bytes,
                    .from = last_block_.buffer(),
                    .checksums = part.checksums.last(1)};
    co_return co_await write_blocks(last);
}

// Writes as many blocks at a time as fit into one change.
Task<Result<void>> ReturningObjects::Attempt::write_blocks(Part part) {
    const auto count = static_cast<std::uint32_t>(part.from.size_bytes / kBlock);
    for (std::uint32_t at = 0; at < count;) {
        if (cancelled_) {
            co_return std::unexpected(
                Error{.code = Errc::kCancelled, .context = "the recall was cancelled"});
        }
        const auto end = co_await allocate_from(part, at);
        if (!end) {
            change_.give_back();
            co_return std::unexpected(end.error());
        }
        const store::BlockRange range{.first = part.offset / kBlock + at, .count = *end - at};
        at = *end;
        if (written_.empty()) {
            attempt_.add(range);
            continue;
        }
        const auto committed = co_await commit(part, range);
        if (!committed) co_return committed;
    }
    co_return Result<void>{};
}

// Allocates blocks of the disk for the blocks from `from` on. Returns the block behind those that
// have some, or are zeros and need none.
Task<Result<std::uint32_t>> ReturningObjects::Attempt::allocate_from(Part part,
                                                                     std::uint32_t from) {
    const auto count = static_cast<std::uint32_t>(part.from.size_bytes / kBlock);
    const auto is_hole = [&part](std::uint32_t block) {
        return is_zero(part.from.span().subspan(block * kBlock, kBlock));
    };
    written_.clear();
    change_.clear();
    std::uint32_t at = from;
    while (at < count && written_.size() < objects::BlockIo::kRequestsMax) {
        if (is_hole(at)) {
            ++at;
            continue;
        }
        std::uint32_t wanted = 1;
        while (at + wanted < count && !is_hole(at + wanted)) ++wanted;
        const auto range = co_await allocate(wanted);
        if (!range) co_return std::unexpected(range.error());
        written_.push_back(at);
        at += range->count;
    }
    co_return at;
}

Task<Result<store::DiskRange>> ReturningObjects::Attempt::allocate(std::uint32_t blocks) {
    const Instant deadline = after(stores_.parts().reactor.now(), kReturnPatience);
    for (;;) {
        const core::WaitOptions wait{.deadline = deadline, .cancel = &ending_};
        const auto range = co_await change_.allocate(blocks, wait);
        if (range || range.error().code != Errc::kNoSpace) co_return range;
        // The recall has begun with enough room beside uploads: what others took of it since is
        // all that it needs.
        const std::uint64_t more = volume().space_use().room_blocks() + 1;
        const auto made = co_await room_.make_room(home_.slot(), more, wait);
        if (!made) co_return std::unexpected(made.error());
    }
}

// There is no suspension between the writes and begin_part().
Task<Result<void>> ReturningObjects::Attempt::commit(Part part, store::BlockRange range) {
    for (std::size_t i = 0; i < written_.size(); ++i) {
        const store::DiskRange onto = change_.allocated()[i];
        change_.records().extent(fid_,
                                 {.first = part.offset / kBlock + written_[i],
                                  .block = onto.block,
                                  .checksums = part.checksums.subspan(written_[i], onto.count)});
    }
    auto room = co_await change_.reserve(0, wait());
    if (!room) {
        change_.give_back();
        co_return std::unexpected(room.error());
    }
    for (std::size_t i = 0; i < written_.size(); ++i) {
        const store::DiskRange onto = change_.allocated()[i];
        const core::Buffer from{.data = part.from.data + written_[i] * kBlock,
                                .size_bytes = onto.count * kBlock};
        io_.write(from, onto.block, {.cancel = &ending_});
    }
    const auto begun = change_.begin_part(attempt_, range, std::move(*room), store::Data::kPending);
    if (!begun) {
        [[maybe_unused]] const auto ended = co_await io_.wait();
        change_.give_back();
        co_return begun;
    }
    blocks_ += change_.net_blocks();
    keep_place();
    const auto ended = co_await change_.write_data(&io_);
    const auto finished = co_await change_.finish();
    if (!finished) co_return std::unexpected(finished.error());
    co_return ended;
}

Task<Result<store::Recall>> ReturningObjects::Attempt::end() {
    objects::RangeLock held;
    const auto locked = co_await lock(&held);
    if (!locked) co_return std::unexpected(locked.error());
    const auto found = volume().map().find(fid_);
    if (!found) co_return std::unexpected(found.error());
    if (!found->has_value()) {
        co_return std::unexpected(Error{.code = Errc::kBusy, .context = "the object is gone"});
    }
    const auto recorded = volume().map().find_recall(fid_);
    if (!recorded) co_return std::unexpected(recorded.error());
    const store::Recall recall = recorded->value_or(store::Recall{});
    std::optional<store::Recall> kept;
    if (recall.pinned_until.unix_ns > stores_.parts().clock.wall().unix_ns) {
        kept = recall;
        kept->ticket = 0;
    }
    objects::DiskUse::Owner& owner = home_.use().owner(objects::owner_of(**found));
    const std::uint64_t counted = (*found)->released_blocks;
    const auto ended = co_await volume().end_bringing_back(&attempt_, std::move(kept), wait());
    if (!ended) co_return std::unexpected(ended.error());
    count_for_owner(&owner, counted);
    co_return recall;
}

// Parts that cannot be freed now are freed by the next attempt, or with the object.
Task<void> ReturningObjects::Attempt::abandon() {
    objects::RangeLock held;
    const auto locked = co_await lock(&held);
    if (!locked) co_return;
    [[maybe_unused]] const auto dropped = co_await drop_parts();
}

Task<Result<void>> ReturningObjects::Attempt::drop_parts() {
    const auto dropped = co_await volume().drop_parts(fid_, wait());
    if (!dropped) co_return std::unexpected(dropped.error());
    co_return Result<void>{};
}

// From now on its blocks on the disk count for the quota, instead of those before the release. The
// numbers may differ: written blocks of zeros have become holes.
void ReturningObjects::Attempt::count_for_owner(objects::DiskUse::Owner* owner,
                                                std::uint64_t counted) {
    const auto blocks = static_cast<std::uint64_t>(blocks_);
    if (blocks > counted) home_.use().add(*owner, {.blocks = blocks - counted});
    if (blocks < counted) {
        home_.use().put_back(*owner, {.blocks = counted - blocks},
                             objects::DiskUse::Scope::kPoolAndOwner);
    }
}

ReturningObjects::ReturningObjects(objects::Stores& stores, RoomMaker& room)
    : stores_(stores), room_(room) {}
ReturningObjects::~ReturningObjects() = default;

ReturningObjects::Attempt& ReturningObjects::of(store::Fid fid) {
    const auto found = attempts_.find(fid);
    ENSURE(found != attempts_.end());
    return *found->second;
}

Task<Result<ReturningObjects::Content>> ReturningObjects::begin(store::Fid fid) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr || home->is_leaving()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the disk is gone"});
    }
    if (contains(fid)) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the object is being recalled already"});
    }
    attempts_.emplace(fid, std::make_unique<Attempt>(stores_, room_, *home, fid));
    const auto begun = co_await of(fid).begin();
    if (!begun) {
        attempts_.erase(fid);
        tell_ended(stores_, fid);
        co_return begun;
    }
    const auto taken = co_await take_space(&of(fid));
    if (!taken) {
        attempts_.erase(fid);
        tell_ended(stores_, fid);
        co_return std::unexpected(taken.error());
    }
    co_return begun;
}

std::uint64_t ReturningObjects::taken_blocks(store::Slot slot) const {
    std::uint64_t blocks = 0;
    for (const auto& [fid, attempt] : attempts_) {
        if (fid.slot() == slot) blocks += attempt->taken_blocks();
    }
    const Instant now = stores_.parts().reactor.now();
    for (const auto& [fid, room] : kept_room_) {
        if (fid.slot() == slot && room.until > now) blocks += room.blocks;
    }
    return blocks;
}

bool ReturningObjects::has_taken_room(store::Fid fid) const {
    const auto attempt = attempts_.find(fid);
    if (attempt != attempts_.end() && attempt->second->has_space()) return true;
    const auto kept = kept_room_.find(fid);
    return kept != kept_room_.end() && kept->second.until > stores_.parts().reactor.now();
}

std::uint64_t ReturningObjects::kept_from(objects::HomeVolume* home, store::Fid fid) const {
    const Instant now = stores_.parts().reactor.now();
    objects::OpenUploads& uploads = home->uploads();
    const std::uint64_t kept = uploads.kept_from_recall(fid, home->volume().space_use(), now);
    // The room of a recall that has some is in taken_blocks().
    const auto first = uploads.line().first_recall_before({.fid = fid, .is_recall = true}, now);
    const bool waits = first && !has_taken_room(first->key.fid);
    return waits ? kept + first->blocks : kept;
}

Task<Result<void>> ReturningObjects::take_space(Attempt* attempt) {
    if (attempt->needed_blocks() > attempt->home().volume().space_use().data_blocks()) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "the object is larger than its disk"});
    }
    const auto kept = kept_room_.find(attempt->fid());
    const bool was_kept =
        kept != kept_room_.end() && kept->second.until > stores_.parts().reactor.now();
    if (kept != kept_room_.end()) kept_room_.erase(kept);
    std::uint64_t wanted = attempt->needed_blocks() + taken_blocks(attempt->slot());
    // Uploads that have begun since then come after it, or recalls would load cartridges in vain.
    if (!was_kept) wanted += kept_from(&attempt->home(), attempt->fid());
    attempt->take_space();
    attempt->keep_place();
    co_return co_await find_space(&attempt->home(), wanted);
}

// REQUIRES: the disk is held.
Task<Result<void>> ReturningObjects::find_space(objects::HomeVolume* home, std::uint64_t blocks) {
    if (blocks <= home->volume().space_use().room_blocks()) co_return Result<void>{};
    const core::WaitOptions wait{.deadline = after(stores_.parts().reactor.now(), kReturnPatience),
                                 .cancel = &home->ending()};
    co_return co_await room_.make_room(home->slot(), blocks, wait);
}

Task<Result<void>> ReturningObjects::make_room(store::Fid fid) {
    objects::HomeVolume* const home = stores_.find(fid.slot());
    if (home == nullptr || home->is_leaving()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the disk is gone"});
    }
    const objects::HomeVolume::Hold hold(*home);
    const auto object = home->volume().map().find(fid);
    if (!object) co_return std::unexpected(object.error());
    // If the object needs no room any more, begin() reports that.
    if (!object->has_value() || !(*object)->is_released) co_return Result<void>{};
    const auto before = check_recalled(*home, fid);
    if (!before) co_return before;
    const std::uint64_t blocks = (*object)->released_blocks;
    const Instant now = stores_.parts().reactor.now();
    kept_room_.erase(fid);
    const std::uint64_t wanted = blocks + taken_blocks(fid.slot()) + kept_from(home, fid);
    // Reserved before the wait, so that the first of two recalls that look for the same room gets
    // it.
    kept_room_[fid] = {.blocks = blocks, .until = after(now, kRoomIsKept)};
    const auto found = co_await find_space(home, wanted);
    if (!found) {
        kept_room_.erase(fid);
        const bool lacks_room = found.error().code == Errc::kNoSpace;
        // The recall may have ended during the wait.
        if (lacks_room && has_turns(*home, fid)) {
            home->uploads().recall_waits(fid, blocks, stores_.parts().reactor.now());
        }
        co_return found;
    }
    home->uploads().recall_has_room(fid, blocks, stores_.parts().reactor.now());
    if (!lets_room_go_ && !stores_.duties().closed()) {
        lets_room_go_ = true;
        stores_.parts().reactor.spawn(stores_.duties(), let_kept_room_go());
    }
    // If the recall has ended during the wait, give_up_room() has given up the room.
    co_return check_recalled(*home, fid);
}

// Releases kept room when its time is over, and wakes recalls that wait for room.
Task<void> ReturningObjects::let_kept_room_go() {
    while (!kept_room_.empty()) {
        const auto next = std::ranges::min_element(
            kept_room_, {}, [](const auto& each) { return each.second.until; });
        const store::Fid fid = next->first;
        const Instant until = next->second.until;
        if (objects::HomeVolume* const home = stores_.find(fid.slot())) {
            const objects::HomeVolume::Hold hold(*home);
            // The removal of the disk ends the wait.
            [[maybe_unused]] const auto slept =
                co_await stores_.parts().reactor.sleep_until(until, &home->ending());
        }
        // The recall may have taken the room, given it up, or kept it for longer.
        const auto kept = kept_room_.find(fid);
        if (kept == kept_room_.end() || kept->second.until > until) continue;
        kept_room_.erase(kept);
        room_.room_may_have_come(fid.slot());
    }
    lets_room_go_ = false;
}

Task<Result<void>> ReturningObjects::write(Part part) {
    Attempt& attempt = of(part.fid);
    co_return co_await attempt.write(part);
}

Task<Result<store::Recall>> ReturningObjects::end(store::Fid fid) {
    Attempt& attempt = of(fid);
    const auto ended = co_await attempt.end();
    attempts_.erase(fid);
    if (!ended) tell_ended(stores_, fid);
    co_return ended;
}

Task<Result<void>> ReturningObjects::abandon(store::Fid fid) {
    Attempt& attempt = of(fid);
    co_await attempt.abandon();
    attempts_.erase(fid);
    tell_ended(stores_, fid);
    co_return Result<void>{};
}

void ReturningObjects::drop_all() {
    kept_room_.clear();
    attempts_.clear();
}

void ReturningObjects::cancel(store::Fid fid) {
    const auto found = attempts_.find(fid);
    if (found != attempts_.end()) found->second->cancel();
}

}  // namespace fopd::library
