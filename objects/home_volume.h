#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/cancel.h"
#include "core/counter.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "core/wait_queue.h"
#include "objects/changed_ranges.h"
#include "objects/disk_use.h"
#include "objects/open_uploads.h"
#include "objects/range_locks.h"
#include "objects/reply_shares.h"
#include "objects/stores.h"
#include "objects/writes_in_flight.h"
#include "store/fid.h"
#include "store/object_map.h"

namespace fopd::objects {

// The number of objects of each pool on a disk. Objects are counted once, after the start, while
// creations and removals during and after that count are added.
class ObjectCount final : public store::MapVisitor {
public:
    using Counts = std::map<PoolId, std::uint64_t>;

    Result<void> object(store::Fid fid, const store::Object& object) override {
        seen(fid, object.pool);
        return {};
    }
    void seen(store::Fid fid, PoolId pool) {
        ++counts_[pool];
        up_to_ = fid;
    }
    void all_seen() { up_to_ = kAll; }
    // Whether all objects of the disk have been counted.
    bool is_whole() const { return up_to_ == kAll; }

    void note_added(store::Fid fid, PoolId pool) {
        if (fid <= up_to_) ++counts_[pool];
    }
    void note_removed(store::Fid fid, PoolId pool) {
        if (fid <= up_to_) --counts_[pool];
    }
    const Counts& get() const { return counts_; }

private:
    static constexpr store::Fid kAll{.high = ~0ULL, .low = ~0ULL};

    Counts counts_;       // Few.
    store::Fid up_to_{};  // Objects with greater fids are not counted yet.
};

// Progress of the newest scrub of a disk. Any thread may read the counters, but not `to_end`.
struct ScrubProgress {
    enum State : std::uint8_t { kNever, kRunning, kDone, kEnded, kFailed };

    core::Counter state;
    core::Counter total_blocks;  // The blocks in use when the scrub began.
    core::Counter read_blocks;
    core::Counter damaged_blocks;
    // How many scrubs were completed since the volume was opened, and how many damaged blocks the
    // last of them found.
    core::Counter done_count;
    core::Counter done_damage;
    bool to_end = false;
};

// The damaged blocks that reads have met since the last complete scrub and that this scrub has not
// found, each counted once.
class MetDamage {
public:
    // More are not told apart, and not counted.
    static constexpr std::size_t kBlocksMax = 4096;

    void add(const store::Fid& fid, std::uint64_t block) {
        if (!found_.contains({fid, block})) insert(met_, {fid, block});
    }
    std::size_t count() const { return met_.size(); }

    // Of the scrub of the disk, in this order. A scrub that is not complete has no end.
    void begin_scrub() { finding_.clear(); }
    void scrub_found(const store::Fid& fid, std::uint64_t block) { insert(finding_, {fid, block}); }
    // All blocks have been read: damage that reads have met is found again, or is gone.
    void end_scrub() {
        met_.clear();
        found_ = std::exchange(finding_, {});
    }

private:
    using Blocks = std::set<std::pair<store::Fid, std::uint64_t>>;

    static void insert(Blocks& blocks, const Blocks::value_type& block) {
        if (blocks.size() < kBlocksMax) blocks.insert(block);
    }

    Blocks met_;
    Blocks found_;    // By the last complete scrub.
    Blocks finding_;  // By the scrub that runs.
};

// Notified of changes of the objects on a disk.
class ObjectObserver {
public:
    // Called in the turn in which the change of an object begins, and the map shows it: the object
    // comes, changes, or goes. The change may still be lost.
    virtual void object_changed(store::Fid fid) = 0;

protected:
    ~ObjectObserver() = default;
};

// A disk of a locality, and the state that all foms on this disk share.
class HomeVolume {
public:
    HomeVolume(const HomeDisk& disk, core::Reactor& reactor);
    ~HomeVolume();
    HomeVolume(const HomeVolume&) = delete;
    HomeVolume& operator=(const HomeVolume&) = delete;

    // Keeps the HomeVolume alive. A caller that uses it in more than one reactor turn needs a hold.
    class Hold {
    public:
        Hold() = default;
        explicit Hold(HomeVolume& home) : home_(&home) { ++home.hold_count_; }
        Hold(Hold&& other) noexcept : home_(std::exchange(other.home_, nullptr)) {}
        Hold& operator=(Hold other) noexcept {
            std::swap(home_, other.home_);
            return *this;
        }
        ~Hold() {
            if (home_ != nullptr) home_->let_go();
        }

    private:
        HomeVolume* home_ = nullptr;
    };
    std::uint64_t hold_count() const { return hold_count_; }
    // Waits until there is no hold. kTimedOut: there still is one at the deadline.
    Task<Result<void>> wait_until_free(Instant deadline);

    // -- removing the disk --

    // From now on the disk gets no new objects, and background work on it is cancelled.
    void begin_departure();
    // Undoes begin_departure() and shut().
    void cancel_departure();
    bool is_leaving() const { return leaving_; }
    // From now on lookups do not find the disk.
    void shut() { shut_ = true; }
    bool is_shut() const { return shut_; }
    // Cancelled when work on the disk other than fops shall end. The reference stays valid while
    // the caller has a hold that it acquired before this call.
    core::CancelSource& ending() { return endings_.back(); }

    store::Volume& volume() const { return *disk_.volume; }
    store::Slot slot() const { return disk_.volume->slot(); }
    std::string_view device_name() const { return disk_.volume->device_name(); }
    // The name of an object of this disk; empty if it has none, is not there, or cannot be read.
    std::string name_of(store::Fid fid) const;
    // The disk's pool. Objects on the disk may be of a tape pool that it is the staging of.
    PoolId pool() const { return disk_.pool; }
    // The pool of an object or upload of this disk; empty if it is not there, or cannot be read.
    std::optional<PoolId> pool_of(store::Fid fid) const;
    io_sched::MediumId medium() const { return disk_.medium; }
    RangeLocks& locks() { return locks_; }
    // Ranges of objects that were changed since the disk was opened.
    ChangedRanges& changed_ranges() { return changed_ranges_; }
    ObjectCount& objects() { return objects_; }
    // Call in the reactor turn in which the change that creates or removes the object begins.
    void note_added(store::Fid fid, PoolId pool) {
        objects_.note_added(fid, pool);
        if (recount_ != nullptr) recount_->note_added(fid, pool);
    }
    void note_removed(store::Fid fid, PoolId pool) {
        changed_ranges_.forget(fid);
        objects_.note_removed(fid, pool);
        if (recount_ != nullptr) recount_->note_removed(fid, pool);
    }
    // A second count, by which a check verifies objects(). Null: no check is running.
    void set_recount(ObjectCount* recount) { recount_ = recount; }
    // Null: no observer. The observer outlives the disk's changes.
    void set_observer(ObjectObserver* observer) { observer_ = observer; }
    ObjectObserver* observer() const { return observer_; }
    DiskUse& use() { return use_; }
    // How many of the replies recorded on this disk belong to each principal.
    ReplyShares& reply_shares() { return reply_shares_; }
    const ReplyShares& reply_shares() const { return reply_shares_; }
    // Any thread.
    core::Counter& checksum_errors() { return checksum_errors_; }
    const core::Counter& checksum_errors() const { return checksum_errors_; }

    // Blocks that the coalescer has moved. Any thread may call this.
    core::Counter& coalesced_blocks() { return coalesced_blocks_; }
    const core::Counter& coalesced_blocks() const { return coalesced_blocks_; }

    ScrubProgress& scrub() { return scrub_; }
    const ScrubProgress& scrub() const { return scrub_; }
    MetDamage& met_damage() { return met_damage_; }
    const MetDamage& met_damage() const { return met_damage_; }
    // To be called after each change of what a scrub or reads have found.
    void damage_changed() const {
        if (disk_.damage != nullptr) disk_.damage->damage_changed();
    }

    // Makes a fid that was never used: the slot, the epoch of its log, and a number that is unique
    // in it. Some bits of the disk's id are included, to tell the disk from others that had the
    // slot.
    store::Fid make_fid();
    // The last fid made; before the first one of this epoch, a fid above all that were made
    // earlier.
    store::Fid newest_fid() const;
    // Whether this disk has made the fid, and no other one that had its slot, as far as the bits of
    // the disk's id tell.
    bool has_made(store::Fid fid) const;

    // How long this disk has been in service. Continues after a start from the newest recorded
    // reply, so that the ages of replies count over restarts, but not while the disk is away, and
    // whatever is done to the wall clock. Disks that an earlier version has used begin at the wall
    // time of their newest reply.
    Duration service_time() const { return service_before_ + (reactor_.now() - opened_at_); }

    OpenUploads& uploads() { return uploads_; }
    WritesInFlight& writes_in_flight() { return writes_in_flight_; }

private:
    void let_go();
    std::uint64_t disk_tag() const;

    const HomeDisk disk_;
    core::Reactor& reactor_;
    const Duration service_before_;
    const Instant opened_at_;
    std::uint64_t hold_count_ = 0;
    core::WaitQueue free_;
    bool leaving_ = false;
    bool shut_ = false;
    std::deque<core::CancelSource> endings_;  // The last is current; holders may use older ones.
    RangeLocks locks_;
    ChangedRanges changed_ranges_;
    ObjectCount objects_;
    ObjectCount* recount_ = nullptr;
    ObjectObserver* observer_ = nullptr;
    DiskUse use_;
    ReplyShares reply_shares_;
    core::Counter checksum_errors_;
    core::Counter coalesced_blocks_;
    ScrubProgress scrub_;
    MetDamage met_damage_;
    std::uint64_t fids_made_ = 0;
    OpenUploads uploads_{use_};
    WritesInFlight writes_in_flight_{use_};
};

}  // namespace fopd::objects
