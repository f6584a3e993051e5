#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
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
#include "store/aligned_memory.h"
#include "store/allocator.h"
#include "store/discards.h"
#include "store/index.h"
#include "store/layered_index.h"
#include "store/log.h"
#include "store/object_map.h"
#include "store/record.h"
#include "store/volume_names.h"
#include "store/zeros_ahead.h"

namespace fopd::store {

// How what was cleared is freed.
struct SweepOptions {
    std::uint32_t extents_a_turn = 256;  // Also of those that are counted.
    Duration pause{0};                   // Between two turns.
};

struct VolumeOptions {
    std::array<std::byte, 16> disk_id{};
    Slot slot = 0;
    Schema schema = kSchema;
    std::uint32_t segment_blocks = 256;
    std::uint64_t overlay_bytes = 64ULL
                                  << 20;  // What changes may take until they are in the index.
    Duration flush_interval = 1s;
    Duration gather_time = LogOptions{}.gather_time;
    Duration checkpoint_interval = 5s;
    // How far before the data zeros are written, on disks that gain by it.
    std::uint64_t zeros_ahead_bytes = 64ULL << 20;
    // Segments that stay empty so long are given back to the device.
    bool discard = false;
    Duration discard_interval = 1min;
    SweepOptions sweep = {};
};

// What an owner's objects are on a disk, and its uploads.
struct OwnerShare {
    std::uint64_t blocks = 0;
    std::uint64_t objects = 0;
};
using OwnerShares = std::map<std::string, OwnerShare, std::less<>>;

// How many replies are stored for a client.
struct ClientReplies {
    ClientId client{};
    std::uint32_t count = 0;
};

// What it works with; all of it outlives the volume.
struct VolumeParts {
    core::Reactor& reactor;
    devices::Device& device;
    Index& index;
    core::EventSink& events;
    NameSink* names = nullptr;  // Is told the names of the objects; may be null.
};

// A change of objects that happens as a whole: its records, and its way into the log. May be used
// again when it has ended.
class Change {
public:
    Change() = default;
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    RecordWriter records;

    // As if nothing had been said of it. Requires: it has not begun, or has ended.
    void clear() {
        records.clear();
        cleared_blocks_ = 0;
    }
    // How many blocks more its objects have since it has begun.
    std::int64_t net_blocks() const { return net_blocks_; }

private:
    friend class Volume;
    std::optional<Commit> commit_;
    std::vector<Place> freed_;
    std::int64_t net_blocks_ = 0;
    NameChanges names_;
    std::uint64_t cleared_blocks_ = 0;  // By its kClear records.
    Durability durability_ = Durability::kDurable;
};

// One disk's objects: the log that is the truth, the map of what is where, and the space. The map
// and the log always say the same: a change is in both from begin() on, and durable a flush later.
// Readers and writers of the same blocks exclude each other by locks that the callers take.
//
// To change: reserve(), allocate(), then in ONE turn start the writes of the data and begin(); then
// data_done(), if there is data, and finish(). To read: the extents of map() under a Reading.
// Lives on one reactor.
class Volume final : SegmentSource, ReplayVisitor, CleanVisitor, ChangeLog, core::Poller {
public:
    Volume(const VolumeParts& parts, const VolumeOptions& options);
    ~Volume() override;
    Volume(const Volume&) = delete;
    Volume& operator=(const Volume&) = delete;

    // Makes an empty volume of a disk, whose index is empty. Whatever was there is gone. Before
    // open().
    Task<Result<void>> format();

    enum class Mode : std::uint8_t { kServe, kReadOnly };
    // Replays the log into the index, finds out which blocks are in use, and serves. Once; close()
    // follows in every case. kCorrupt: flushed entries of the log are missing, or the index knows
    // of more than the log does; a volume opened read-only shows what there is.
    Task<Result<void>> open(Mode mode);
    // Requires: no change is under way.
    Task<Result<void>> close();

    // Whether changes are taken. Once they are not, they will not be again.
    bool serving() const { return serving_ && log_.failed() == nullptr; }
    // Set while the index has no room, or no reserve: then only changes that free space are taken,
    // as long as the index or the log has room for them.
    const std::optional<Error>& index_failure() const { return index_failure_; }
    // Why serving() is false.
    const Error& failure() const { return log_.failed() != nullptr ? *log_.failed() : failure_; }
    // Whether the map shows of an object what may be lost, and nobody will know before the next
    // start: it was changed, and the volume's end came before that was durable. Others are as they
    // are on the disk.
    bool is_uncertain(Fid fid);
    Slot slot() const { return options_.slot; }
    // What the log's open() found.
    const Replayed& replayed() const { return replayed_; }
    const LogDamage& damage() const { return log_.damage(); }

    // What is where. Changed by changes only. What it lends is good for the turn.
    ObjectMap& map() { return map_; }
    // All blocks of an object, a piece of it a turn. Requires: nobody changes it meanwhile.
    Task<Result<std::uint64_t>> count_blocks(Fid fid, core::WaitOptions wait);
    // Whether blocks of removed or truncated objects are still to be freed.
    bool sweeping() const { return has_to_sweep_; }
    // How much each owner had at the end of open().
    const OwnerShares& owners_at_open() const { return owners_at_open_; }
    // How many recorded replies each client had at the end of open(), by ascending client.
    const std::vector<ClientReplies>& replies_at_open() const { return replies_at_open_; }

    // -- changes --

    // Room in the log for records of so many bytes, and in memory for what they change. kNoSpace:
    // there is none for the purpose, and none will come by itself.
    Task<Result<Reservation>> reserve(std::uint32_t bytes, core::WaitOptions wait,
                                      Purpose purpose = Purpose::kAdding);
    std::uint32_t records_bytes_max() const { return log_.payload_max(); }
    // Up to `blocks` consecutive blocks; kNoSpace when there is none.
    Result<Place> allocate(std::uint32_t blocks, Purpose purpose = Purpose::kAdding);
    // Whether allocate() gives so many blocks now to what frees more than it takes.
    bool can_allocate_to_free(std::uint32_t blocks) {
        settle();
        return space_->blocks_to_free() >= blocks;
    }
    // Of a change that does not begin.
    void give_back(Place place);
    // Waits until what was freed by now can be had, and a piece of what is still to be freed.
    Task<Result<void>> settle_space(core::WaitOptions wait);
    // After settle_space(): waits a while for those who were given blocks, and will free others or
    // give them back, and for reads that keep some from being free. False, at once: there are none.
    Task<Result<bool>> wait_for_blocks(core::WaitOptions wait);
    // Adds a hole to a change, by a record of kPunchRecordBytes. One of many extents takes several
    // turns to be counted, and its places are free only some time after the change. Requires:
    // nobody else changes the object until the change has begun.
    // Returns how many blocks that frees.
    Task<Result<std::uint64_t>> punch(Change* change, Fid fid, BlockRange range,
                                      core::WaitOptions wait);
    // The map has the change from now on. An error that is not the volume's end left everything as
    // it was; the records are the caller's to be right.
    Result<void> begin(Change& change, Reservation reservation, Durability durability, Data data);
    // Exactly once if begun with Data::kPending. A failure is the volume's end.
    void data_done(Change& change, const Result<void>& result) {
        log_.data_done(*change.commit_, result);
    }
    // Waits until it is durable, if it was begun so, and until names that it changed are known by
    // that. A change of names must be begun so, and finished before its fom reserves again: a
    // checkpoint waits for it.
    Task<Result<Receipt>> finish(Change* change);
    // Everything begun so far is durable.
    Task<Result<void>> sync(core::WaitOptions wait) { return log_.sync(wait); }
    Receipt newest() const { return {.epoch = log_.epoch(), .seq = log_.begun_seq()}; }
    std::uint64_t durable_seq() const { return log_.durable_seq(); }
    // The last change of an earlier epoch that is not lost. None: too long ago to be known.
    std::optional<std::uint64_t> last_seq_of(std::uint64_t epoch) const {
        return log_.last_seq_of(epoch);
    }

    // -- reads --

    // What is in use now is given to nobody else while the reading lasts.
    void begin_read(Reading& reading) { space_->begin_read(reading); }

    // -- figures --
    SpaceUse space_use() const { return space_ ? space_->use() : SpaceUse{}; }
    // Nothing will ever look at what it holds.
    bool is_free(std::uint64_t block) const { return serving() && space_->is_free(block); }
    // Memory that changes take until they are in the index.
    std::uint64_t changed_bytes() const { return index_.changed_bytes(); }
    LogSpaceFigures log_space() const { return log_.space(); }
    // What only adds is refused, until something is freed.
    bool is_log_full() const { return log_.is_full(); }
    std::uint64_t discarded_segments() const { return discards_.discarded_segments(); }
    std::uint64_t checkpoint_count() const { return checkpoint_count_; }

private:
    friend class VolumeCheck;
    class SpaceMaker;
    class ObjectCounter;
    class ReplyCounter;
    class ClearedCounter;

    Result<std::uint32_t> take_segment(SegmentNeed need) override;
    void give_back_segment(std::uint32_t segment) override;
    Task<Result<bool>> data_ok(LogEntry entry) override;
    Task<Result<void>> replay(LogEntry entry) override;
    Task<Result<void>> keep(LogEntry entry) override;
    std::uint64_t newest_change() const override { return log_.closed_seq(); }
    Task<Result<void>> make_durable() override;

    // At the end of a turn nobody looks at the index any more.
    bool poll() override { return false; }
    void flush() override { map_.release(); }
    Duration sleep_max() override { return Duration::max(); }
    Look look() const override { return Look::kNot; }

    // What records free, which names they change, and how many blocks more objects have by them;
    // but for those of kClear.
    struct Effects {
        std::vector<Place>& freed;
        NameChanges& names;
        std::int64_t& net_blocks;
    };
    Result<void> apply(const Record& record, Effects effects);
    Result<void> apply_extent(const Record& record, Effects effects);
    Result<void> apply_punch(const Record& record, Effects effects);
    void will_sweep();
    Result<void> apply_value(const Record& record, NameChanges& names);
    Result<void> apply_object(const Record& record, NameChanges& names);
    Task<Result<void>> flush_replayed();
    Result<void> apply_reply(const Record& record);
    Task<Result<bool>> blocks_match(Extent extent);
    Result<bool> keep_what_lives(RecordReader& reader);
    Result<void> keep_if_alive(const Record& record);
    Result<void> keep_extent(const Record& record);
    Task<Result<void>> count_space();
    Task<Result<void>> count_owners();
    struct Counted {
        std::uint64_t blocks = 0;
        std::uint32_t turns = 0;
        std::uint32_t cleared = 0;  // Ranges that are a hole already.
    };
    // Those that still count, or what is cleared as well.
    enum class Which : std::uint8_t { kLiving, kAll };
    Task<Result<Counted>> count_range(Fid fid, BlockRange range, Which which,
                                      core::WaitOptions wait);
    Result<void> check_wanted(core::WaitOptions wait) const;
    OwnerShare& share_of(std::string_view owner);
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
    void note_changed(const Record& record);
    void note_durable();
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
    std::optional<Allocator> space_;
    core::WaitQueue released_;  // An empty segment, which zeros or a discard held.
    ZerosAhead zeros_;
    Discards discards_;
    bool serving_ = false;
    Error failure_{.code = Errc::kClosed, .context = "volume"};
    Replayed replayed_;
    OwnerShares owners_at_open_;
    std::vector<ClientReplies> replies_at_open_;

    // Objects that were changed by what may not be durable yet, in the order of the changes.
    struct Changed {
        Fid fid{};
        std::uint64_t seq = 0;
    };
    std::deque<Changed> changed_;
    std::map<Fid, std::uint64_t> uncertain_;  // Of those, once there is an end: the last change.

    AlignedMemory check_memory_;  // For data that replay looks at.
    bool replay_flushed_ = false;
    Mode mode_ = Mode::kServe;

    RecordWriter kept_;
    std::vector<Place> swept_places_;

    core::Gate duties_;
    core::CancelSource stop_;
    core::WaitQueue checkpoint_wanted_;
    core::WaitQueue checkpoint_made_;
    core::WaitQueue sweep_wanted_;
    core::WaitQueue swept_;         // A piece, or not.
    core::WaitQueue blocks_used_;   // That were given out, or they were given back.
    std::uint64_t sweep_news_ = 0;  // Something was freed, or nothing could be.
    bool has_to_sweep_ = true;
    std::optional<Error> index_failure_;
    bool checkpoint_fails_ = false;
    std::uint64_t let_in_changes_ = 0;  // Of a full index, by reserve(), since the last checkpoint.
    bool log_was_full_ = false;
    std::uint64_t checkpoint_count_ = 0;
};

}  // namespace fopd::store
