#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cancel.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/poller.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/device.h"
#include "store/allocator.h"
#include "store/block_counter.h"
#include "store/bringing_back.h"
#include "store/copies.h"
#include "store/copy.h"
#include "store/discards.h"
#include "store/index.h"
#include "store/layered_index.h"
#include "store/log.h"
#include "store/object_map.h"
#include "store/record.h"
#include "store/record_applier.h"
#include "store/released_rules.h"
#include "store/uncertain_objects.h"
#include "store/volume_census.h"
#include "store/volume_names.h"
#include "store/zeros_ahead.h"

namespace fopd::store {

class VolumeView;

// How the blocks of removed and truncated objects are freed.
struct SweepOptions {
    // How many extents are freed, or counted, in one turn of the reactor.
    std::uint32_t extents_a_turn = 256;
    Duration pause{0};  // Between two turns that free extents.
};

struct VolumeOptions {
    std::array<std::byte, 16> disk_id{};
    Slot slot = 0;
    Schema schema = kSchema;
    std::uint32_t segment_blocks = 256;
    std::uint64_t overlay_bytes = 64ULL << 20;  // Memory for changes that are not in the index yet.
    Duration flush_interval = 1s;
    Duration gather_time = LogOptions{}.gather_time;
    Duration checkpoint_interval = 5s;
    // How far ahead of the data blocks are zeroed, on devices whose first write to a block is slow.
    std::uint64_t zeros_ahead_bytes = 64ULL << 20;
    // Whether segments that stay empty for the interval are discarded on the device.
    bool discard = false;
    Duration discard_interval = 1min;
    SweepOptions sweep = {};
};

// All parts outlive the volume.
struct VolumeParts {
    core::Reactor& reactor;
    devices::Device& device;
    Index& index;
    core::EventSink& events;
    NameSink* names = nullptr;  // Learns the names of the objects; may be null.
    // The same device with background priority, for cleaning and checks of the log, zeroing and
    // discards. Null: `device` does that, too.
    devices::Device* background = nullptr;
};

// An atomic change of objects: its records, and its commit in the log. May be reused when it has
// ended.
class Change {
public:
    Change() = default;
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    RecordWriter records;

    // Makes it empty. REQUIRES: it has not begun, or has ended.
    void clear() {
        records.clear();
        cleared_blocks_ = 0;
        grant_ = {};
    }
    // After begin(): how many blocks the change adds to its objects; negative if it frees more.
    std::int64_t net_blocks() const { return effects_.net_blocks; }

private:
    friend class Volume;
    std::optional<Commit> commit_;
    RecordEffects effects_;
    std::uint64_t cleared_blocks_ = 0;  // By its kClear records.
    ReleasedRules::Grant grant_;        // For the next begin().
    Durability durability_ = Durability::kDurable;
};

// One disk's objects: the log, which is authoritative, the map of objects and extents, and the free
// space. begin() puts a change into the map and the log together; the next flush makes it durable.
// REQUIRES: the callers take locks, so that nobody reads blocks while another caller writes them.
//
// To change: reserve(), allocate(), then in ONE turn start the writes of the data and begin(); then
// data_done(), if there is data, and finish(). To read: begin_read(), then the extents of map().
// Lives on one reactor.
class Volume final : SegmentSource, ChangeLog, core::Poller {
public:
    Volume(const VolumeParts& parts, const VolumeOptions& options);
    ~Volume() override;
    Volume(const Volume&) = delete;
    Volume& operator=(const Volume&) = delete;

    // Makes an empty volume on a disk, and destroys all data of the disk. Before open(). REQUIRES:
    // the index is empty.
    Task<Result<void>> format();

    enum class Mode : std::uint8_t { kServe, kReadOnly };
    // Replays the log into the index, finds out which blocks are in use, and serves. Called once.
    // close() must be called afterwards, even after an error. kCorrupt: flushed entries of the log
    // are missing, or the index has applied more than the log holds; a volume opened read-only
    // shows the readable rest instead.
    Task<Result<void>> open(Mode mode);
    // REQUIRES: no change is in progress.
    Task<Result<void>> close();

    // Whether changes are accepted. Once false, it stays false.
    bool serving() const { return serving_ && log_.failed() == nullptr; }
    // Set while the index is full, or lacks the reserve with which it can be written when the disk
    // is full. Then only changes that free space are accepted, and only while the index or the log
    // has room for them.
    const std::optional<Error>& index_failure() const { return index_failure_; }
    // Why serving() is false.
    const Error& failure() const { return log_.failed() != nullptr ? *log_.failed() : failure_; }
    // Whether the volume failed before a change of the object was durable, so that only the next
    // start shows whether that change is lost. Other objects are as the map has them.
    bool is_uncertain(Fid fid);
    Slot slot() const { return options_.slot; }
    std::string_view device_name() const { return device_.name(); }
    // What the replay of open() found in the log, and the damage that it met.
    const Replayed& replayed() const { return replayed_; }
    const LogDamage& damage() const { return log_.damage(); }

    // The objects and their extents, for reading: only the volume modifies them. Views that the map
    // returns are valid in this turn only.
    ObjectMap& map() { return map_; }
    // Counts the blocks of an object, a bounded number a turn. REQUIRES: the object does not change
    // meanwhile.
    Task<Result<std::uint64_t>> count_blocks(Fid fid, core::WaitOptions wait);
    // Counts the blocks that are charged to the owner of an object or upload: its blocks on the
    // disk, or those that a released object had at its release. Otherwise like count_blocks().
    Task<Result<std::uint64_t>> count_owned(Fid fid, core::WaitOptions wait);
    // Whether blocks of removed or truncated objects are still to be freed in the background.
    bool sweeping() const { return has_to_sweep_; }
    // How many blocks and objects each owner had at the end of open().
    const PoolShares& owners_at_open() const { return census_.owners(); }
    // Counts the blocks and objects of each owner again. The result is exact only if the volume
    // does not change meanwhile.
    Task<Result<PoolShares>> count_owners();
    // How many recorded replies each client had at the end of open(), by ascending client.
    const std::vector<ClientReplies>& replies_at_open() const { return census_.replies(); }
    // When the newest of these replies was made, in the disk's service time; 0: there is none.
    Duration newest_reply_at_open() const { return census_.newest_reply(); }

    // -- changes --

    // Reserves room in the log for records of so many bytes, and in memory for their changes.
    // kNoSpace: there is no room for the purpose, and waiting would not help.
    Task<Result<Reservation>> reserve(std::uint32_t bytes, core::WaitOptions wait,
                                      Purpose purpose = Purpose::kAdding);
    std::uint32_t records_bytes_max() const { return log_.payload_max(); }
    // Allocates up to `blocks` consecutive blocks; kNoSpace when there is none.
    Result<DiskRange> allocate(std::uint32_t blocks, Purpose purpose = Purpose::kAdding);
    // Whether allocate() can give so many blocks now to a change that frees more than it takes.
    bool can_allocate_to_free(std::uint32_t blocks) {
        settle();
        return space_->blocks_to_free() >= blocks;
    }
    // Returns the blocks of a change that is not begun.
    void give_back(DiskRange range);
    // Waits until the blocks freed so far can be allocated again, and until the sweep has freed a
    // part of the cleared ranges, if there are any.
    Task<Result<void>> settle_space(core::WaitOptions wait);
    // After settle_space(): waits a while for changes that hold allocated blocks and will use or
    // return them, and for reads that delay freed blocks. False, at once: there are none.
    Task<Result<bool>> wait_for_blocks(core::WaitOptions wait);
    // Adds a hole to a change, as a record of kPunchRecordBytes, and returns how many blocks it
    // frees. A hole with many extents takes several turns to count, and its blocks become free some
    // time after the change. REQUIRES: no other change of the object begins before this one.
    Task<Result<std::uint64_t>> punch(Change* change, Fid fid, BlockRange range,
                                      core::WaitOptions wait);
    // Applies the change to the map and begins its commit. After an error either nothing has
    // changed, or the volume has failed. kBusy: bytes of an object that it changes are released.
    // REQUIRES: the records are valid.
    Result<void> begin(Change& change, Reservation reservation, Durability durability, Data data);
    // Reports the end of the data writes. Called exactly once for a change begun with
    // Data::kPending. A failure fails the volume.
    void data_done(Change& change, const Result<void>& result) {
        log_.data_done(*change.commit_, result);
    }
    // Waits until a change begun with Durability::kDurable is durable, and until the name sink has
    // the names that it changes. REQUIRES: a change of names is begun with Durability::kDurable,
    // and the caller calls finish() for it before its next reserve(). Otherwise reserve() may wait
    // for a checkpoint, and the checkpoint for finish().
    Task<Result<Receipt>> finish(Change* change);
    // Waits until everything begun so far is durable.
    Task<Result<void>> sync(core::WaitOptions wait) { return log_.sync(wait); }
    // The newest change that was begun.
    Receipt newest() const { return {.epoch = log_.epoch(), .seq = log_.begun_seq()}; }
    std::uint64_t durable_seq() const { return log_.durable_seq(); }
    // The last log entry of an earlier epoch of the log: commits of that epoch with a higher number
    // are lost. None: the epoch is too old to be known.
    std::optional<std::uint64_t> last_seq_of(std::uint64_t epoch) const {
        return log_.last_seq_of(epoch);
    }

    // -- copies on cartridges --
    //
    // A copy is live while its object has the content that it was made of. A change of the bytes or
    // the size of the object makes its copies dead with the same record, as does a removal. A copy
    // must be durable on its cartridge before it is recorded.

    static constexpr std::size_t kCopiesAtOnceMax = 256;
    struct CopiesAdded {
        Receipt receipt{};
        std::uint32_t live = 0;
        std::uint32_t dead = 0;  // Copies whose objects have changed or were removed.
    };
    // Records copies of any objects, all in one commit, which is durable when it returns. A copy
    // replaces the one of the same object, offset and cartridge; the same copy again changes
    // nothing. Dead copies are only counted. kBusy and kInvalid: none is recorded. kBusy: copies of
    // an older generation of a cartridge are still recorded, see forget_cartridge(), or a copy
    // would replace a longer one of a released object. kInvalid: the generation is older than the
    // recorded one, another copy has the same position on the cartridge, a range does not lie
    // within its object, or an object would have more than kCopiesOfObjectMax copies. REQUIRES: at
    // most kCopiesAtOnceMax.
    Task<Result<CopiesAdded>> add_copies(std::vector<Copy> copies, core::WaitOptions wait);
    // Whether the last copy of bytes of a released object may be dropped, so that they are lost.
    enum class Loss : std::uint8_t { kRefused, kAccepted };
    // Makes copies dead; durable when it returns. Keys without a copy are ignored. kBusy: a
    // released object needs one of them, and `loss` is kRefused; then none is dropped.
    // REQUIRES: at most kCopiesAtOnceMax.
    Task<Result<void>> drop_copies(std::vector<CopyKey> copies, Loss loss, core::WaitOptions wait);
    // Drops all copies on a cartridge, in several commits, and its totals with the last one.
    Task<Result<void>> forget_cartridge(VsnText vsn, Loss loss, core::WaitOptions wait);
    // The live copies on a cartridge in the order of the tape, from a position on: at most
    // `count_max` in a turn. Continue from the position behind the last one: {file, member + 1}.
    Result<std::vector<Copy>> copies_on(const VsnText& vsn, CopyPosition from,
                                        std::size_t count_max) {
        return map_.copies().on(vsn, from, count_max);
    }
    // The live copies of an object, by ascending offset.
    Result<std::vector<Copy>> copies_of(Fid fid);
    // The recorded copies on each cartridge, and how many of them are live.
    const std::map<VsnText, CartridgeUse>& cartridges() const { return map_.copies().use(); }

    // -- released objects --
    //
    // The bytes of a released object are on cartridges only. Its extents cannot be read: kBusy.
    // begin() accepts changes of its attributes and name, its removal, and its truncation to zero
    // bytes. It refuses all other changes of the object with kBusy.

    struct ReleasedBytes {
        Receipt receipt{};
        std::uint64_t blocks = 0;  // The blocks that became free; they still count for the owner.
    };
    // Adds to the change an object that is known only from its copies on cartridges, such as one of
    // another node. It becomes a released object here, or replaces a released object that has older
    // content. The caller calls begin() in the same turn, and then finish(). kInvalid: the copies
    // do not have all bytes of the object, or for a reason of add_copies(). kBusy: as for
    // add_copies(). REQUIRES: at most kCopiesAtOnceMax copies, all of the object's content; the
    // change is empty; the caller locks the object.
    Result<void> put_from_tape(Change& change, Fid fid, const Object& object,
                               std::vector<Copy> copies);
    // How many bytes to reserve() for the records of put_from_tape().
    static std::uint32_t from_tape_bytes(std::size_t copies);
    // Takes the bytes of an object off the disk. Their blocks become free when the record is
    // durable. kBusy: the object has another content than `content_version`; kInvalid: it has no
    // bytes, is released already, or its copies do not have all of them. REQUIRES: the caller locks
    // the object.
    Task<Result<ReleasedBytes>> release(Fid fid, std::uint64_t content_version,
                                        core::WaitOptions wait);

    // To bring the bytes back: begin_bringing_back(); for each part reserve(), allocate(), then in
    // ONE turn start the writes of its data and begin_part(); data_done() and finish();
    // end_bringing_back(). The object stays released until the end, and nobody can read the parts.
    // Blocks left by an attempt that did not end are freed by the next attempt, by drop_parts(), or
    // with the object. One attempt for an object at a time.
    //
    // kNotFound: there is no such object; kInvalid: it is not released. REQUIRES: the caller locks
    // the object, here and in end_bringing_back().
    Task<Result<BringingBack>> begin_bringing_back(Fid fid, core::WaitOptions wait);
    // Like begin(), for a change that has only extents of the object within `range`. Blocks of the
    // range without an extent are holes. If all of the range is a hole, call attempt.add(range)
    // instead. kBusy: the object has changed or is not released any more.
    Result<void> begin_part(BringingBack& attempt, Change& change, BlockRange range,
                            Reservation reservation, Data data);
    // Ends the released state, and the recall; `kept` is the remaining part of the recall, such as
    // a pin. From then on the blocks of the parts count for the owner, instead of
    // Object::released_blocks. Durable when it returns. kBusy: the object has changed; kInvalid:
    // parts are missing.
    // REQUIRES: all parts are finished without an error.
    Task<Result<Receipt>> end_bringing_back(BringingBack* attempt, std::optional<Recall> kept,
                                            core::WaitOptions wait);
    // Frees the blocks that an attempt has left; returns their number.
    Task<Result<std::uint64_t>> drop_parts(Fid fid, core::WaitOptions wait);

    // -- recalls and pins --
    //
    // An object has at most one recall. It ends with end_recall(), with end_bringing_back(), or
    // with the object.

    // Stores or replaces the recall of an object, durably. kNotFound: there is no such object.
    // REQUIRES: the ticket of a new recall is higher than all earlier ones on the volume. A ticket
    // of the form (newest().epoch << 32) + counter is, even after a restart.
    Task<Result<Receipt>> put_recall(Fid fid, Recall recall, core::WaitOptions wait);
    // Removes the recall of an object, durably. Does nothing if it has none.
    Task<Result<void>> end_recall(Fid fid, core::WaitOptions wait);
    // All recalls, by ascending ticket; pins come first.
    Task<Result<std::vector<RecallOf>>> recalls();

    // -- reads --

    // Blocks in use now are not allocated again until the reading ends. A reading that is paused by
    // Reading::rest() is ended when a change finds no free block.
    void begin_read(Reading& reading) { space_->begin_read(reading); }

    // -- figures --
    SpaceUse space_use() const { return space_ ? space_->use() : SpaceUse{}; }
    // Whether the block is free: no object, pending change or reader needs its content. The
    // simulated world overwrites free blocks, so that reading one is noticed.
    bool is_free(std::uint64_t block) const { return serving() && space_->is_free(block); }
    // Memory of changes that are not in the index yet.
    std::uint64_t changed_bytes() const { return index_.changed_bytes(); }
    // Whether changes that free nothing are refused, until something is freed.
    bool is_log_full() const { return log_.is_full(); }
    // The segments of the log.
    LogSpaceFigures log_space() const { return log_.space(); }
    // The checkpoints of the index since open() began.
    std::uint64_t checkpoint_count() const { return checkpoint_count_; }

    // Read access for a check. REQUIRES: the volume is open.
    VolumeView view();

private:
    class CopyRecords;

    // The pause before failed background work is tried again.
    static constexpr Duration kRetryAfter = 1s;

    Result<std::uint32_t> take_segment(SegmentNeed need) override;
    void give_back_segment(std::uint32_t segment) override;
    std::uint64_t newest_change() const override { return log_.closed_seq(); }
    Task<Result<void>> make_durable() override;

    // A view of the map is valid until the end of the turn.
    bool poll() override { return false; }
    void end_of_turn() override { map_.release(); }
    Duration sleep_max() override { return Duration::max(); }

    Task<Result<void>> bring_up(Mode mode);
    Task<Result<Replayed>> replay_log(ReplayOptions::Mode mode);
    Task<Result<void>> count_space(Mode mode);
    Result<Object> released_object(Fid fid);
    Task<Result<Receipt>> commit(Change* change, Reservation room);
    void will_sweep();
    bool has_memory(std::uint64_t more_bytes) const;
    static std::uint64_t index_changes(std::uint32_t bytes, Purpose purpose);
    bool index_takes(std::uint64_t changes) const;
    std::uint32_t extents_a_turn() const;
    bool checkpoint_due() const;
    Task<Result<void>> checkpoint();
    void note_checkpoint(const Result<void>& made);
    void note_log_room();
    Task<void> keep_index_up();
    Task<void> keep_log_short();
    Task<void> sweep();
    Task<Result<void>> sweep_some();
    void fail(const Error& error);
    void settle() { space_->settle(log_.trusted()); }
    void size_log();

    core::Reactor& reactor_;
    devices::Device& device_;
    core::EventSink& events_;
    const VolumeOptions options_;
    LayeredIndex index_;
    ObjectMap map_;
    Log log_;
    VolumeNames names_;
    RecordApplier applier_;
    ReleasedRules rules_;
    BlockCounter counter_;
    VolumeCensus census_;
    UncertainObjects uncertain_;
    std::optional<Allocator> space_;
    core::WaitQueue released_;  // Woken when zeroing or a discard of an empty segment has ended.
    ZerosAhead zeros_;
    Discards discards_;
    bool serving_ = false;
    Error failure_{.code = Errc::kClosed, .context = "volume"};
    Replayed replayed_;

    std::vector<DiskRange> swept_ranges_;

    core::Gate duties_;
    core::CancelSource stop_;
    core::WaitQueue checkpoint_wanted_;
    core::WaitQueue checkpoint_made_;
    core::WaitQueue sweep_wanted_;
    core::WaitQueue swept_;         // Woken when the sweep has freed a part or failed.
    core::WaitQueue blocks_used_;   // Woken when allocated blocks were used or returned.
    std::uint64_t sweep_news_ = 0;  // How often the sweep has freed blocks or failed.
    bool has_to_sweep_ = true;
    std::optional<Error> index_failure_;
    bool checkpoint_fails_ = false;
    // Index changes that reserve() granted for a full index since the last checkpoint.
    std::uint64_t let_in_changes_ = 0;
    bool log_was_full_ = false;
    std::uint64_t checkpoint_count_ = 0;
};

}  // namespace fopd::store
