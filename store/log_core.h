#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/gate.h"
#include "core/poller.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "store/aligned_memory.h"
#include "store/entry_reader.h"
#include "store/hole_filler.h"
#include "store/log.h"
#include "store/log_replay.h"
#include "store/log_space.h"
#include "store/superblock_copies.h"

namespace fopd::store {

// What is behind Log. The commit path is in log_core.cc, opening, superblocks, growth and cleaning
// in log_upkeep.cc, what is done about space that was never written in log_zeros.cc.
//
// Entries are numbered; those on their way are in slots, the one that gathers commits last:
//
//     retired_ .. complete_ .. closed_ | closed_ + 1: gathering
//                 durable_
//
// - Closed: its place is chosen and its write has begun. Places are chosen in the order of numbers.
// - Complete: it and all before it are written, and the data of their commits are.
// - Durable: a flush that began when it was complete has succeeded. durable_ <= complete_.
// - Retired: its slot is free. An entry with durable commits stays until it is durable, so that
//   what comes meanwhile gathers instead of being written in dribs and drabs.
//
// An entry is closed at the end of a turn with a commit, so that it leaves with the data. While
// another is on its way it gathers a while longer: a device that is fast is done by then, and the
// more commits share an entry and a flush the less each of them costs; one that is slow has the
// next entry written while it still flushes. When the next commit does not fit it is closed at
// once. What cleaning commits again waits for company: an entry of nothing else is closed when it
// is full, or somebody waits until it is durable, so that what lives takes less room than it had.
// The memory that is promised is limited so that there is always a slot. An entry is closed because
// the next commit does not fit into it, and then both together have more payload than one entry can
// have: so two slots in turn take more than that of the limit. Or it is closed for another reason,
// and then only while fewer than entries_in_flight_max are on their way.
class LogCore final : core::Timer, core::Poller {
public:
    LogCore(core::Reactor& reactor, devices::Device& device, SegmentSource& source,
            const LogOptions& options);
    ~LogCore();

    Task<Result<void>> format(std::vector<std::uint32_t> segments);
    Task<Result<Replayed>> open(ReplayVisitor* visitor, ReplayOptions options);
    Task<Result<void>> close();

    Task<Result<Reservation>> reserve(std::uint32_t bytes, core::WaitOptions wait, Purpose purpose);
    void give_up(const Reservation& reservation);
    void begin(Commit& commit, Reservation reservation, std::span<const std::byte> records,
               std::uint32_t record_count, Durability durability, Data data);
    void data_done(Commit& commit, const Result<void>& result);
    Task<Result<void>> sync(core::WaitOptions wait);
    Task<Result<void>> settle(std::uint64_t seq, core::WaitOptions wait);
    Task<Result<void>> look_through(LogVisitor* visitor);

    static bool ended(const Commit& commit) { return commit.stage_ == Commit::Stage::kEnded; }
    static void wait_for(Commit& commit, std::coroutine_handle<> handle) {
        commit.waiter_ = handle;
    }
    static Result<void> result_of(const Commit& commit) {
        if (commit.failed_) return std::unexpected(commit.error_);
        return {};
    }

    std::uint32_t payload_max() const { return payload_max_; }
    std::uint64_t reserved_bytes() const { return reserved_bytes_; }
    std::uint64_t epoch() const { return epoch_; }
    std::optional<std::uint64_t> last_seq_of(std::uint64_t epoch) const;
    std::uint64_t closed_seq() const { return closed_; }
    std::uint64_t begun_seq() const { return closed_ + (gathering().commit_count > 0 ? 1 : 0); }
    std::uint64_t durable_seq() const { return durable_; }
    std::uint64_t trusted() const { return trusted_; }
    const Error* failed() const { return failed_ ? &*failed_ : nullptr; }
    const LogDamage& damage() const { return damage_; }

    void set_applied(std::uint64_t seq);
    void set_segments_max(std::uint32_t count);
    void set_live_bytes(std::uint64_t bytes);
    void stall(const Error& why);
    void unstall() { stalled_.reset(); }
    const LogSpace& space() const { return space_; }
    std::uint32_t segments_max() const { return segments_max_; }
    void refuse(const Error& why);
    bool is_full() const { return full_ && !has_space_to_add(); }
    bool cleaning_wanted() const;
    Task<Result<void>> wait_cleaning_wanted(core::WaitOptions wait);
    Task<Result<void>> clean(CleanVisitor* visitor);

private:
    static constexpr std::size_t kSlots = 16;

    struct Slot {
        core::Buffer buffer;
        std::uint32_t payload_bytes = 0;
        std::uint32_t record_count = 0;
        std::uint32_t commit_count = 0;
        std::uint32_t data_pending = 0;
        std::uint64_t mark = 0;
        std::uint64_t offset = 0;  // On the disk.
        bool wants_flush = false;  // It has durable commits.
        bool leaves_soon = false;  // It has more than what cleaning commits again.
        bool written = false;
    };

    // -- the commit path --
    Slot& slot_of(std::uint64_t seq) { return slots_[seq % kSlots]; }
    Slot& gathering() { return slot_of(closed_ + 1); }
    const Slot& gathering() const { return slots_[(closed_ + 1) % kSlots]; }
    std::uint64_t in_flight() const { return closed_ - retired_; }
    bool fits_into_gathering(std::uint32_t size, bool cleans) const;
    void begin_failed(Commit& commit);
    std::uint64_t close_entry();
    bool may_close() const;
    Instant close_at() const;
    void close_soon();
    void leave_soon();
    bool poll() override { return false; }
    void flush() override;
    Duration sleep_max() override { return Duration::max(); }
    Look look() const override { return Look::kNot; }
    Task<void> write_entry(std::uint64_t seq);
    void advance();
    bool flush_due() const;
    Task<void> flush_while_due();
    void start_flusher();
    void became_durable(std::uint64_t seq);
    void retire();
    void end(Commit& commit);
    void fail(const Error& error, const char* what);
    Error failure() const;
    static Error closed_error();
    Task<Result<void>> flush_device();
    static void on_time(core::Timer& timer);
    void arm_timer();
    Task<void> write_idle_mark();

    // -- room --
    // The first in line stands at the door until there is room for it, so that nobody is overtaken.
    struct Line {
        explicit Line(core::Reactor& reactor) : others(reactor) {}
        core::WaitQueue others;
        bool at_door = false;
    };
    Line& line_of(Purpose purpose) {
        if (purpose == Purpose::kAdding) return adding_line_;
        return purpose == Purpose::kCutting ? cutting_line_ : freeing_line_;
    }
    std::uint64_t left_to_others(Purpose purpose) const;
    bool has_space_to_add() const { return space_.fits(1, left_to_others(Purpose::kAdding)); }
    bool has_room(std::uint32_t bytes, Purpose purpose) const;
    Task<Result<void>> wait_for_room(std::uint32_t bytes, core::WaitOptions wait, Purpose purpose);
    std::optional<Error> why_no_room(Purpose purpose) const;
    void wake_room();

    // -- superblocks, segments --
    void spawn(Task<void> task) { reactor_.spawn(gate_, std::move(task)); }
    Result<void> check(const Superblock& superblock) const;
    void take_over(const Superblock& superblock, LogReplay::Outcome outcome);
    Task<Result<void>> begin_epoch();
    Task<Result<void>> write_last_superblock();
    Task<Result<void>> clear_block(LogPosition position);
    Superblock current_superblock() const;
    Task<Result<void>> write_superblock(Superblock superblock);
    Task<void> lock_superblock();
    void unlock_superblock();
    void look_after_space();
    bool growth_due() const;
    void ask_source_again() { source_empty_ = source_dry_ = false; }
    bool superblock_due() const { return entered_since_superblock_ >= kEnteredMax; }
    Task<void> look_after_space_until_done();
    Task<Result<void>> grow();
    bool shrinking_due() const;
    Task<Result<void>> shrink();
    Task<Result<void>> zero_segment(std::uint32_t segment);
    Task<void> fill_head();
    std::optional<std::size_t> segment_to_fill() const;
    void fill_ahead();
    Task<void> fill_ahead_until_done();
    Task<Result<void>> hand_out_oldest(CleanVisitor* visitor, std::uint64_t end_seq);
    bool is_cleaned_note_due() const;
    Task<Result<void>> note_cleaned(std::uint64_t seq);
    bool is_oldest_applied() const;
    Task<Result<void>> drop_oldest();
    void begin_round();
    bool is_another_round_worth_it() const;
    void end_round();

    // -- looking through it: log_look.cc --
    struct Stretch {
        LogSegment segment;
        std::uint64_t last_seq = 0;
    };
    Task<void> look_at_superblocks(LogVisitor* visitor);
    Task<Result<void>> look_at_segment(LogVisitor* visitor, EntryReader* reader, Stretch stretch);
    std::optional<Stretch> stretch_with(std::uint64_t seq, std::uint64_t end_seq) const;
    bool has(const LogSegment& segment) const;
    std::uint64_t block_of(LogPosition at) const;

    // A superblock is written at the latest when the log has entered so many segments: replay
    // looks for its beginning through no more.
    static constexpr std::uint32_t kEnteredMax = 16;
    core::Reactor& reactor_;
    devices::Device& device_;
    SegmentSource& source_;
    const LogOptions options_;
    const std::uint32_t payload_max_;
    const std::uint64_t bytes_max_;  // Of records, promised and on their way.

    AlignedMemory memory_;
    std::array<Slot, kSlots> slots_;
    AlignedMemory zeros_;
    HoleFiller filler_;
    std::set<std::uint32_t> filled_;  // Segments of which all was written once.
    bool filling_ = false;
    SuperblockCopies copies_;
    LogSpace space_;

    std::uint64_t retired_ = 0;
    std::uint64_t complete_ = 0;
    std::uint64_t complete_mark_ = 0;       // Of entry complete_.
    std::uint64_t flush_wanted_ = 0;        // The last complete entry with durable commits.
    std::uint64_t sync_wanted_ = 0;         // Flush when this one is complete.
    std::uint64_t flush_tickets_ = 0;       // Flushes asked for by flush_device(),
    std::uint64_t flush_tickets_done_ = 0;  // and those that had begun later and have succeeded.
    std::uint64_t durable_ = 0;
    std::uint64_t trusted_ = 0;
    std::uint64_t closed_ = 0;
    std::uint64_t last_records_seq_ = 0;  // The last entry that is more than a mark.
    Instant closed_at_{};                 // The last entry that was.
    // Firing is all it does: the entry is closed at the end of the turn.
    core::Timer close_timer_{[](core::Timer&) {}};
    bool flushing_ = false;
    core::IntrusiveList<Commit> waiting_;  // Durable commits, in their order.
    std::optional<Error> failed_;
    core::WaitQueue progress_;  // durable_, trusted_, flush_tickets_done_ or failed_ changed.

    std::uint64_t reserved_bytes_ = 0;
    std::uint64_t in_use_bytes_ = 0;
    Line adding_line_;
    Line cutting_line_;
    Line freeing_line_;
    std::uint32_t waiting_to_free_ = 0;  // For room, to free or to cut.
    core::WaitQueue room_;

    // A round of cleaning takes every segment that there was when it began. Another one follows at
    // once only when enough has changed meanwhile that it is worth its cost.
    std::uint64_t changed_blocks_ = 0;  // Of all commits but those of cleaning.
    std::uint64_t round_changed_blocks_ =
        0;                                // When the round began or, if it gained nothing, ended.
    std::uint64_t round_live_bytes_ = 0;  // When it began.
    std::uint64_t round_last_seq_ = 0;
    bool in_round_ = false;
    std::uint64_t exhausted_capacity_ = 0;  // At the end of the last round that gained nothing.
    std::uint64_t exhausted_live_bytes_ = 0;
    std::uint64_t live_bytes_ = 0;  // See Log.
    bool exhausted_ = false;
    bool full_ = false;                 // The last round has left no room for what adds.
    std::uint64_t cleaned_seq_ = 0;     // See Superblock.
    std::uint64_t noted_capacity_ = 0;  // When it was written last.

    std::uint64_t generation_ = 0;
    std::uint64_t epoch_ = 0;
    std::uint64_t epoch_first_seq_ = 0;
    EarlierFirstSeqs earlier_first_seqs_{};
    std::uint64_t applied_ = 0;
    std::uint32_t schema_version_ = 0;
    std::uint32_t segments_max_;
    std::uint32_t entered_since_superblock_ = 0;
    bool serving_ = false;
    bool closing_ = false;
    bool superblock_locked_ = false;
    bool upkeep_runs_ = false;
    bool source_empty_ = false;     // For more room,
    bool source_dry_ = false;       // and for what cannot go on.
    std::optional<Error> stalled_;  // Why the index will not have more of the log.
    std::optional<Error> refused_;  // Why nobody gets a reservation any more.
    bool starving_ = false;         // Grow by what is left rather than stand still.
    core::WaitQueue superblock_free_;
    core::WaitQueue cleaning_;
    LogDamage damage_;
    core::Gate gate_;
};

}  // namespace fopd::store
