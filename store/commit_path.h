#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <span>

#include "core/gate.h"
#include "core/intrusive_list.h"
#include "core/poller.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/device.h"
#include "store/aligned_memory.h"
#include "store/cleaning_rounds.h"
#include "store/commit.h"
#include "store/log_options.h"
#include "store/log_space.h"

namespace fopd::store {

// The commit path of a log: reservations, and the way of commits through entries and flushes until
// they are durable. Log describes how a commit is made.
//
// Entries are numbered. Those in flight are in entries_, a ring; the last one gathers commits:
//
//     retired_ .. complete_ .. closed_ | closed_ + 1: gathering
//                 durable_
//
// - Closed: the entry has a position, and its write has begun. Positions are given in the order of
//   the numbers.
// - Complete: this entry and all entries before it are written, and so are the data of their
//   commits.
// - Durable: a flush that began when the entry was complete has succeeded. durable_ <= complete_.
// - Retired: its memory is free. An entry with commits that must become durable keeps its memory
//   until they are, so that later commits gather in larger entries.
//
// An entry is closed at the end of the turn of its first commit, so that it is written together
// with the data. While another entry is in flight, it gathers until gather_time has passed since
// the previous entry was closed: by that time a fast device is done, and commits that share an
// entry and a flush cost less each; a slow device gets the next entry written while it still
// flushes. If the next commit does not fit, the entry is closed at once. Commits of cleaning wait
// for other commits: an entry that has nothing else is closed when it is full, or when a caller
// waits until it is durable, so that the live records take less room than before.
//
// The memory promised to reservations is limited, so that the memory of one entry is always free.
// Either an entry is closed because the next commit does not fit; then this entry and the next one
// together use more than one entry's payload of the limit. Or it is closed for another reason, and
// then only while fewer than entries_in_flight_max entries are in flight.
class CommitPath : core::Timer, core::Poller {
public:
    CommitPath(const CommitPath&) = delete;
    CommitPath& operator=(const CommitPath&) = delete;

    // Waits until there is room for a commit with so many bytes of records. Reservations with the
    // same purpose are served in order. kNoSpace: more than payload_max(), or the log is full: it
    // cannot grow, and another round of cleaning would gain nothing. kTimedOut, kCancelled; kIo
    // when the log has failed; kClosed.
    Task<Result<Reservation>> reserve(std::uint32_t bytes, core::WaitOptions wait,
                                      Purpose purpose = Purpose::kAdding);
    std::uint32_t payload_max() const { return payload_max_; }
    // The bytes of all reservations that begin() has not used yet.
    std::uint64_t reserved_bytes() const { return reserved_bytes_; }

    // Copies the records into the log; from now on they are in it unless it fails. REQUIRES: at
    // least one record, and no more bytes than reserved.
    void begin(Commit& commit, Reservation reservation, std::span<const std::byte> records,
               std::uint32_t record_count, Durability durability, Data data);
    // Reports the end of the data writes of a commit. Called exactly once for a commit begun with
    // Data::kPending. A failure fails the log.
    void data_done(Commit& commit, const Result<void>& result);

    class DurableAwaiter;
    // Awaits a Result<void>: success when the commit and all commits before it are durable. At most
    // once, and only for a commit begun with Durability::kDurable. It has no deadline: until the
    // device has answered the outcome is unknown.
    DurableAwaiter durable(Commit& commit);
    // Waits until everything begun so far is durable.
    Task<Result<void>> sync(core::WaitOptions wait);
    // Waits until trusted() has reached `seq`; if necessary, writes a mark: an entry without
    // records, which says up to where entries are durable. REQUIRES: `seq` was begun.
    Task<Result<void>> settle(std::uint64_t seq, core::WaitOptions wait);

    // Refuses all reservations from now on with `why`, including those that wait already.
    void refuse(const Error& why);

    std::uint64_t epoch() const { return epoch_; }
    Receipt receipt_of(const Commit& commit) const { return {epoch_, commit.seq()}; }
    // The newest entry that has a commit.
    std::uint64_t begun_seq() const { return closed_ + (gathering().commit_count > 0 ? 1 : 0); }
    // The newest entry that no later commit will share.
    std::uint64_t closed_seq() const { return closed_; }
    std::uint64_t durable_seq() const { return durable_; }
    // A recovery from now on never checks the data of the entries up to this one. It lags behind
    // durable_seq() by one flush, or by the flush interval when the disk becomes idle.
    std::uint64_t trusted() const { return trusted_; }
    // The error that stopped the log; null if it has not failed.
    const Error* failed() const { return failed_ ? &*failed_ : nullptr; }

protected:
    // All arguments outlive the path.
    CommitPath(core::Reactor& reactor, devices::Device& device, const LogOptions& options);
    virtual ~CommitPath() = default;

    // -- calls of the commit path to the log's upkeep --

    struct RoomWanted {
        Purpose purpose;
        bool is_first;  // The reservation asks for the first time.
    };
    // Called when a reservation finds no room. Starts what can make room (growth, cleaning), or
    // returns the reason why nothing will.
    virtual std::optional<Error> make_room(RoomWanted wanted) = 0;
    // Called when an entry gets the first position in another segment.
    virtual void segment_entered() = 0;
    // Called when the log has failed.
    virtual void path_failed() = 0;

    // -- for the log's upkeep --

    Result<void> allocate_entries();
    // Sets the last recovered entry; new entries follow it. REQUIRES: everything up to it is
    // durable.
    void continue_behind(std::uint64_t seq);
    // The next entries are of this epoch, and their records of this version.
    void set_epoch(std::uint64_t epoch, std::uint32_t schema_version);
    std::uint32_t schema_version() const { return schema_version_; }

    // Takes reservations from now on.
    void serve() { serving_ = true; }
    bool is_serving() const { return serving_; }
    // Takes no reservations from now on, and refuses those that wait.
    void begin_close();
    bool is_closing() const { return closing_; }
    // Waits for all background tasks.
    Task<void> end_close();

    // Succeeds when a flush that began after this call has.
    Task<Result<void>> flush_device();
    // A superblock says that the entries up to this one were flushed.
    void trust(std::uint64_t seq);
    // Fails every commit that is not durable, and all later ones.
    void fail(const Error& error, const char* what);
    static Error closed_error();
    // There may be room now: reservations try again, and those still without room report it again.
    void wake_room() {
        has_stuck_ = false;
        room_.wake_all();
    }
    // Whether reservations, entries in flight or held space may yet free room, without any upkeep.
    bool may_regain_room() const {
        return reserved_bytes_ > 0 || in_flight() > 0 || space_.is_held();
    }
    bool has_waiting_to_free() const { return waiting_to_free_ > 0; }
    // Whether a reservation, other than those of cleaning, waits because the segments of the log
    // have no room for it.
    bool has_waiting_for_space() const { return waiting_for_space_ > 0; }
    // Whether a pending reservation needs another segment.
    bool has_stuck() const { return has_stuck_; }
    void spawn(Task<void> task) { reactor_.spawn(gate_, std::move(task)); }

    core::Reactor& reactor_;
    devices::Device& device_;
    const LogOptions options_;
    LogSpace space_;
    CleaningRounds rounds_;

private:
    friend Reservation;
    static constexpr std::size_t kEntriesInMemory = 16;

    // An entry that gathers commits or is in flight.
    struct EntryState {
        core::Buffer buffer;
        std::uint32_t payload_bytes = 0;
        std::uint32_t record_count = 0;
        std::uint32_t commit_count = 0;
        std::uint32_t data_pending = 0;
        std::uint64_t mark = 0;
        std::uint64_t offset = 0;  // On the disk.
        bool wants_flush = false;  // It has commits that must become durable.
        bool leaves_soon = false;  // It has other commits than cleaning, or a caller waits for it.
        bool written = false;
    };
    // Reservations of one purpose. Only the first one waits for room; the others wait in line.
    struct Line {
        explicit Line(core::Reactor& reactor) : others(reactor) {}
        core::WaitQueue others;
        bool has_first = false;
    };

    // -- room --
    Line& line_of(Purpose purpose);
    std::uint64_t left_to_others(Purpose purpose) const;
    bool has_room(std::uint32_t bytes, Purpose purpose) const;
    Task<Result<void>> wait_for_room(std::uint32_t bytes, core::WaitOptions wait, Purpose purpose);
    void give_up(const Reservation& reservation);

    // -- from commits to entries --
    EntryState& entry_of(std::uint64_t seq) { return entries_[seq % kEntriesInMemory]; }
    EntryState& gathering() { return entry_of(closed_ + 1); }
    const EntryState& gathering() const { return entries_[(closed_ + 1) % kEntriesInMemory]; }
    std::uint64_t in_flight() const { return closed_ - retired_; }
    void add(Commit& commit, Reservation reservation, std::span<const std::byte> records,
             std::uint32_t record_count, Durability durability, Data data);
    bool fits_into_gathering(std::uint32_t size, bool cleans) const;
    void begin_failed(Commit& commit);
    std::uint64_t close_entry();
    bool may_close() const;
    Instant close_at() const;
    void close_soon();
    void leave_soon();
    bool poll() override { return false; }
    void end_of_turn() override;
    Duration sleep_max() override { return Duration::max(); }
    Task<void> write_entry(std::uint64_t seq);

    // -- from entries to durability --
    void advance();
    void retire();
    bool flush_due() const;
    Task<void> flush_while_due();
    void start_flusher();
    void became_durable(std::uint64_t seq);
    void end(Commit& commit);
    static void on_time(core::Timer& timer);
    void arm_timer();
    Task<void> write_idle_mark();

    const std::uint32_t payload_max_;
    const std::uint64_t bytes_max_;  // The most bytes of records, reserved and in flight.

    AlignedMemory memory_;
    std::array<EntryState, kEntriesInMemory> entries_;

    std::uint64_t retired_ = 0;
    std::uint64_t complete_ = 0;
    std::uint64_t complete_mark_ = 0;       // The mark of entry complete_.
    std::uint64_t flush_wanted_ = 0;        // The last complete entry that wants a flush.
    std::uint64_t sync_wanted_ = 0;         // Flush when this one is complete.
    std::uint64_t flush_tickets_ = 0;       // Calls of flush_device().
    std::uint64_t flush_tickets_done_ = 0;  // Calls up to this one are done.
    std::uint64_t durable_ = 0;
    std::uint64_t trusted_ = 0;
    std::uint64_t closed_ = 0;
    std::uint64_t last_records_seq_ = 0;  // The last entry that is more than a mark.
    Instant closed_at_{};                 // When the last entry was closed.
    // Its callback is empty: the timer causes a turn, and end_of_turn() closes the entry at its
    // end.
    core::Timer close_timer_{[](core::Timer&) {}};
    bool flushing_ = false;
    core::IntrusiveList<Commit> waiting_;  // Commits that must become durable, in their order.
    core::WaitQueue progress_;  // durable_, trusted_, flush_tickets_done_ or failed_ changed.

    std::uint64_t reserved_bytes_ = 0;
    std::uint64_t in_use_bytes_ = 0;
    Line adding_line_;
    Line cutting_line_;
    Line freeing_line_;
    std::uint32_t waiting_to_free_ = 0;    // Reservations to free or to cut that wait for room.
    std::uint32_t waiting_for_space_ = 0;  // See has_waiting_for_space().
    bool has_stuck_ = false;
    core::WaitQueue room_;

    std::uint64_t epoch_ = 0;
    std::uint32_t schema_version_ = 0;
    bool serving_ = false;
    bool closing_ = false;
    std::optional<Error> failed_;
    std::optional<Error> refused_;  // Why no reservation is granted any more.
    core::Gate gate_;
};

// Used by co_await only.
class CommitPath::DurableAwaiter {
public:
    explicit DurableAwaiter(Commit& commit) : commit_(commit) {}
    bool await_ready() const { return commit_.stage_ == Commit::Stage::kEnded; }
    void await_suspend(std::coroutine_handle<> handle) { commit_.waiter_ = handle; }
    [[nodiscard]] Result<void> await_resume() const;

private:
    Commit& commit_;
};

inline CommitPath::DurableAwaiter CommitPath::durable(Commit& commit) {
    return DurableAwaiter(commit);
}

}  // namespace fopd::store
