#include "objects/open_uploads.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/ensure.h"

namespace fopd::objects {

namespace {

constexpr store::Fid kBehindAllUploads{.high = std::numeric_limits<std::uint64_t>::max(),
                                       .low = std::numeric_limits<std::uint64_t>::max()};

}  // namespace

std::uint64_t OpenUploads::Upload::rest() const {
    return expected.left_blocks - std::min(expected.left_blocks, moving_blocks);
}

void OpenUploads::Upload::note_pace(std::uint64_t blocks, Instant now) {
    constexpr Duration kBlockMayTake = Duration{1s} / kBlocksPerSecondMin;
    constexpr auto kBlocksMax = static_cast<std::uint64_t>(kPaceSpan / kBlockMayTake);
    const Instant from = std::max(in_pace_until.value_or(after(now, kPaceSpan)), now);
    const auto counted = static_cast<std::int64_t>(std::min(blocks, kBlocksMax));
    in_pace_until = std::min(after(from, kBlockMayTake * counted), after(now, kPaceSpan));
}

OpenUploads::Upload* OpenUploads::find(store::Fid fid) {
    const auto found = uploads_.find(fid);
    return found == uploads_.end() ? nullptr : &found->second;
}

void OpenUploads::gone(store::Fid fid) {
    line_.forget(fid);
    const auto found = uploads_.find(fid);
    if (found == uploads_.end()) return;
    Upload& upload = found->second;
    leave_moving(upload, upload.moving_blocks, upload.allocated_blocks);
    if (upload.keeps_room) {
        keeping_.erase({.is_behind = upload.is_behind, .fid = fid});
        end_keeping(upload);
    }
    uploads_.erase(found);
}

// -- how long they have been idle --

void OpenUploads::mark(store::Fid newest, Instant now, Duration enough) {
    // Promises count in the quota on all disks, and perhaps no request comes for uploads of this
    // disk.
    let_go_idle(now);
    marks_.push_back({.newest = newest, .at = now});
    while (marks_.size() > 1 && after(marks_[1].at, enough) <= now) marks_.pop_front();
}

bool OpenUploads::is_idle_since(store::Fid fid, Instant then) const {
    if (marks_.empty() || marks_.front().at > then || marks_.front().newest < fid) return false;
    const auto found = uploads_.find(fid);
    return found == uploads_.end() || !found->second.written_at ||
           *found->second.written_at <= then;
}

// -- the room that they need --

bool OpenUploads::expects(store::Fid fid) const {
    const auto found = uploads_.find(fid);
    return found != uploads_.end() && found->second.expected.owner != nullptr;
}

void OpenUploads::expect(store::Fid fid, const Expected& expected) {
    ENSURE(expected.owner != nullptr);
    ENSURE(!expects(fid));
    uploads_[fid].expected = expected;
}

bool OpenUploads::keeps_room(store::Fid fid) const {
    const auto found = uploads_.find(fid);
    return found != uploads_.end() && found->second.keeps_room;
}

void OpenUploads::stay(store::Fid fid, const store::SpaceUse& space, Instant now) {
    Upload* const upload = find(fid);
    if (upload == nullptr) return;
    if (!upload->is_slow(now)) upload->in_pace_until = after(now, kPaceSpan);
    keep(fid, space, now);
}

void OpenUploads::keep(store::Fid fid, const store::SpaceUse& space, Instant now) {
    let_go_idle(now);
    Upload* const upload = find(fid);
    if (upload == nullptr || upload->expected.owner == nullptr) return;
    if (!upload->keeps_room) {
        if (upload->is_slow(now) || has_its_share(*upload->expected.owner)) return;
        if (!use_.promise(*upload->expected.owner, upload->expected.left_blocks)) return;
        upload->is_behind = rank_of(fid, *upload, space).is_behind;
        upload->keeps_room = true;
        upload->kept_since = now;
        keeping_.emplace(Rank{.is_behind = upload->is_behind, .fid = fid}, upload);
    }
    upload->kept_until = after(now, kIdle);
}

bool OpenUploads::has_its_share(const DiskUse::Owner& owner) const {
    const auto own = static_cast<std::size_t>(std::ranges::count_if(
        keeping_, [&owner](const auto& each) { return each.second->expected.owner == &owner; }));
    return own >= kKeepingMax - keeping_.size();
}

void OpenUploads::let_go_idle(Instant now) {
    for (auto at = keeping_.begin(); at != keeping_.end();) {
        Upload& upload = *at->second;
        const bool is_idle = upload.kept_until <= now && upload.writes == 0;
        if (!is_idle && !upload.is_slow(now)) {
            ++at;
            continue;
        }
        end_keeping(upload);
        at = keeping_.erase(at);
    }
}

void OpenUploads::end_keeping(Upload& upload) {
    upload.keeps_room = false;
    use_.end_promise(*upload.expected.owner, upload.expected.left_blocks);
}

std::uint64_t OpenUploads::needed_at(const Rank& rank, const store::SpaceUse& space) const {
    std::uint64_t blocks = coming_blocks_;
    bool has_unknown = false;
    for (const auto& [other, upload] : keeping_) {
        if (other >= rank) break;
        blocks += upload->rest();
        has_unknown = has_unknown || upload->expected.is_unknown;
    }
    return has_unknown ? blocks + space.data_blocks() / kUnknownPart : blocks;
}

// An upload that keeps no room gets the rank of its age only if it could end there beside the
// uploads before it. Otherwise uploads that have begun in its room might not end.
OpenUploads::Rank OpenUploads::rank_of(store::Fid fid, const Upload& upload,
                                       const store::SpaceUse& space) const {
    if (upload.keeps_room) return {.is_behind = upload.is_behind, .fid = fid};
    const Rank by_age{.fid = fid};
    const bool fits = upload.rest() + needed_at(by_age, space) <= space.room_blocks();
    return {.is_behind = !fits, .fid = fid};
}

std::uint64_t OpenUploads::needed_before(store::Fid fid, const store::SpaceUse& space,
                                         Instant now) {
    let_go_idle(now);
    const Upload* const upload = find(fid);
    if (upload == nullptr) return needed_at({.fid = fid}, space);
    Rank rank = rank_of(fid, *upload, space);
    if (!upload->keeps_room && rank.is_behind) rank.fid = kBehindAllUploads;
    return needed_at(rank, space);
}

std::uint64_t OpenUploads::kept_from_others(const store::SpaceUse& space, Instant now) {
    let_go_idle(now);
    const Rank behind_all{.is_behind = true, .fid = kBehindAllUploads};
    std::uint64_t written_blocks = 0;
    for (const auto& [rank, upload] : keeping_) written_blocks += upload->expected.written_blocks;
    const std::uint64_t data_blocks = space.data_blocks();
    const std::uint64_t not_written = data_blocks - std::min(data_blocks, written_blocks);
    return std::min(needed_at(behind_all, space), not_written / 2);
}

// -- who waits for room --

void OpenUploads::observe_room(const store::SpaceUse& space, Instant now) {
    if (line_.is_empty()) return line_.observe(0, now);
    const Rank behind_all{.is_behind = true, .fid = kBehindAllUploads};
    line_.observe(static_cast<std::int64_t>(space.room_blocks()) -
                      static_cast<std::int64_t>(needed_at(behind_all, space)),
                  now);
}

std::uint64_t OpenUploads::wanted_by_waiting(store::Fid fid, const Asked& asked, Instant now) {
    const Upload* const upload = find(fid);
    if (upload == nullptr || !upload->keeps_room) return line_.wanted_before(asked.key, now);
    // The blocks that are kept for an upload are its own.
    if (asked.blocks > 0 && asked.blocks <= upload->rest()) return 0;
    return line_.wanted_since(upload->kept_since, now);
}

void OpenUploads::note_answer(const Asked& asked, std::uint64_t needed,
                              const store::SpaceUse& space, Instant now) {
    if (needed <= space.room_blocks()) {
        line_.leave(asked.key);
        return;
    }
    line_.wait({.key = asked.key,
                .owner = asked.owner,
                .blocks = std::max<std::uint64_t>(asked.blocks, 1),
                .deadline = asked.deadline},
               now);
}

std::uint64_t OpenUploads::upload_needs(store::Fid fid, const Asked& asked,
                                        const store::SpaceUse& space, Instant now) {
    std::uint64_t others = needed_before(fid, space, now);
    observe_room(space, now);
    const std::uint64_t waiting = wanted_by_waiting(fid, asked, now);
    // Room that others give up is for the first in the line.
    if (waiting == 0 && asked.blocks + others > space.room_blocks() &&
        make_way(fid, {.owner = asked.owner, .blocks = asked.blocks}, space)) {
        others = needed_before(fid, space, now);
    }
    std::uint64_t needed = asked.blocks + others + waiting;
    // An upload of unknown size will keep its part from those who wait.
    if (waiting > 0 && asked.blocks == 0) needed += space.data_blocks() / kUnknownPart;
    const Upload* const upload = find(fid);
    const bool keeps_room = upload != nullptr && upload->keeps_room;
    if (!keeps_room) note_answer(asked, needed, space, now);
    return needed;
}

std::uint64_t OpenUploads::change_needs(const Asked& asked, const store::SpaceUse& space,
                                        Instant now) {
    const std::uint64_t kept = kept_from_others(space, now);
    observe_room(space, now);
    const std::uint64_t needed = asked.blocks + kept + line_.wanted_before(asked.key, now);
    note_answer(asked, needed, space, now);
    return needed;
}

std::uint64_t OpenUploads::kept_from_recall(store::Fid fid, const store::SpaceUse& space,
                                            Instant now) {
    const std::uint64_t kept = kept_from_others(space, now);
    observe_room(space, now);
    return kept + line_.wanted_before({.fid = fid, .is_recall = true}, now);
}

void OpenUploads::recall_waits(store::Fid fid, std::uint64_t blocks, Instant now) {
    line_.wait({.key = {.fid = fid, .is_recall = true}, .blocks = blocks, .deadline = kNever}, now);
}

bool OpenUploads::make_way(store::Fid fid, const Refused& refused, const store::SpaceUse& space) {
    // Only looked up, as its order depends on addresses.
    std::map<const DiskUse::Owner*, std::uint64_t> kept{{refused.owner, 0}};
    for (const auto& [rank, upload] : keeping_) {
        kept[upload->expected.owner] += rank.is_behind ? 0 : upload->rest();
    }
    const std::uint64_t fair_blocks = space.data_blocks() / kept.size();
    const Upload* const own = find(fid);
    const Rank own_rank{.is_behind = own != nullptr && own->keeps_room && own->is_behind,
                        .fid = fid};
    std::vector<Rank> too_many;
    std::uint64_t gained_blocks = 0;
    for (auto at = keeping_.rbegin(); at != keeping_.rend(); ++at) {
        const auto& [rank, upload] = *at;
        const Rank behind{.is_behind = true, .fid = rank.fid};
        if (rank.is_behind || rank >= own_rank || behind < own_rank) continue;
        if (upload->expected.owner == refused.owner || upload->rest() == 0) continue;
        std::uint64_t& of_owner = kept[upload->expected.owner];
        if (of_owner <= fair_blocks) continue;
        of_owner -= upload->rest();
        gained_blocks += upload->rest();
        too_many.push_back(rank);
    }
    // Moves only if all of the refused upload fits afterwards, so that the upload can end.
    const std::uint64_t wanted =
        std::max(refused.blocks, own == nullptr ? 0 : own->rest()) + needed_at(own_rank, space);
    if (too_many.empty() || wanted - gained_blocks > space.room_blocks()) return false;
    for (const Rank& rank : too_many) {
        auto moved = keeping_.extract(rank);
        moved.mapped()->is_behind = true;
        moved.key().is_behind = true;
        keeping_.insert(std::move(moved));
    }
    return true;
}

// -- writes in progress --

void OpenUploads::leave_moving(Upload& upload, std::uint64_t moving, std::uint64_t allocated) {
    ENSURE(moving >= allocated);
    ENSURE(coming_blocks_ >= moving - allocated);
    coming_blocks_ -= moving - allocated;
    upload.moving_blocks -= moving;
    upload.allocated_blocks -= allocated;
}

void OpenUploads::end_write(Upload& upload, const Write& write) {
    ENSURE(upload.writes > 0);
    --upload.writes;
    leave_moving(upload, write.blocks_ - write.counted_blocks_,
                 write.taken_blocks_ - write.counted_blocks_);
}

void OpenUploads::Write::begin(OpenUploads& uploads, store::Fid fid, std::uint64_t blocks) {
    ENSURE(uploads_ == nullptr);
    Upload* const upload = uploads.find(fid);
    if (upload == nullptr) return;
    *this = Write();
    uploads_ = &uploads;
    fid_ = fid;
    blocks_ = blocks;
    ++upload->writes;
    upload->moving_blocks += blocks;
    uploads.coming_blocks_ += blocks;
}

void OpenUploads::Write::took(std::uint64_t blocks) {
    if (uploads_ == nullptr) return;
    ENSURE(taken_blocks_ + blocks <= blocks_);
    taken_blocks_ += blocks;
    Upload* const upload = uploads_->find(fid_);
    if (upload == nullptr) return;
    upload->allocated_blocks += blocks;
    uploads_->coming_blocks_ -= blocks;
}

void OpenUploads::Write::counted(std::uint64_t blocks, std::uint64_t added) {
    if (uploads_ == nullptr) return;
    ENSURE(counted_blocks_ + blocks <= taken_blocks_);
    counted_blocks_ += blocks;
    added_blocks_ += added;
    Upload* const upload = uploads_->find(fid_);
    if (upload == nullptr) return;
    uploads_->leave_moving(*upload, blocks, blocks);
    Expected& expected = upload->expected;
    const std::uint64_t expected_blocks = std::min(expected.left_blocks, added);
    expected.left_blocks -= expected_blocks;
    expected.written_blocks += added;
    expected_blocks_ += expected_blocks;
    if (upload->keeps_room) uploads_->use_.end_promise(*expected.owner, expected_blocks);
}

// An upload that grows beyond its expected size counts as one of unknown size from then on.
void OpenUploads::Write::done(const store::SpaceUse& space, Instant now) {
    if (uploads_ == nullptr) return;
    const Write ended = std::exchange(*this, Write());
    Upload* const upload = ended.uploads_->find(ended.fid_);
    if (upload == nullptr) return;
    if (ended.added_blocks_ > ended.expected_blocks_) upload->expected.is_unknown = true;
    // Called before the write ends, because an idle upload would lose its rank.
    if (ended.added_blocks_ > 0) {
        upload->note_pace(ended.added_blocks_, now);
        ended.uploads_->keep(ended.fid_, space, now);
        // One of unknown size could go on without end.
        const bool will_end = upload->keeps_room && !upload->expected.is_unknown;
        if (will_end) ended.uploads_->line_.note_sent(ended.added_blocks_, now);
    }
    ended.uploads_->end_write(*upload, ended);
}

void OpenUploads::Write::give_back() {
    if (uploads_ == nullptr) return;
    const Write ended = std::exchange(*this, Write());
    Upload* const upload = ended.uploads_->find(ended.fid_);
    if (upload == nullptr) return;
    ended.uploads_->end_write(*upload, ended);
    Expected& expected = upload->expected;
    expected.left_blocks += ended.expected_blocks_;
    expected.written_blocks -= ended.added_blocks_;
    if (upload->keeps_room)
        ended.uploads_->use_.promise_again(*expected.owner, ended.expected_blocks_);
}

}  // namespace fopd::objects
